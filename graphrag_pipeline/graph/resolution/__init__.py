"""Entity resolution: which titles mean one and the same thing, decided between mentions and graph.

What is decided is a function of the mentions there are now, the settings, the user's file and the
model's answers, and never of the order in which documents came. Mentions stay as they are; the
graph's fold reads them through ``entity_aliases``.
"""
