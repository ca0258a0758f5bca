"""Evaluation on the user's own corpus: the papers' experiments as a tool.

``questions`` reads questions and ``making`` has a model write them, ``evaluating`` runs an
experiment, ``judging`` and ``metrics`` say how good its answers are, ``results`` what follows,
``pages`` shows it. The core knows none of this: it comes in by the doors that ``pyproject.toml``
lists.
"""

from pathlib import Path

PROMPTS = Path(__file__).parent / "prompts"
