"""The published index for assistants, by the Model Context Protocol.

``tools`` are what an assistant may call, with ``outputs`` that programs read, ``resources`` what it
may read, ``prompts`` what a person may pick; ``quoting`` marks all that comes from documents as
data. ``protocol`` puts them together and ``endpoint`` serves them at
``/mcp``; ``serving.stdio`` serves them to the program that started this one.
"""

ADDRESS = "/mcp"
"""Where the protocol is served."""
