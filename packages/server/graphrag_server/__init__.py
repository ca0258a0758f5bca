"""The published index over HTTP: one process that answers programs, browsers and assistants.

``holding`` keeps an engine open on each collection's release, ``limits`` bounds what is done at
once, ``problems`` says what went wrong, ``routes`` are the addresses, ``app`` puts them together
and ``server`` listens. The extra ``server`` is needed.
"""
