"""Published systems, a folder each: its structures, methods and prompts, and a page about it.

Nothing outside imports from here: :mod:`graphrag_pipeline.core.systems` finds what is there.
"""
