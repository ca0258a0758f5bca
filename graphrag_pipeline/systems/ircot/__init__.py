"""IRCoT: another method again and again, for each step of reasoning.

Source: Trivedi et al., 2023. README.md says what it does.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(methods={"ircot": "method:IRCOT"})
