"""KAG: a plan of questions of one subject each and of arithmetic, and a conclusion.

Source: Liang et al., 2024. README.md says what it does.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(methods={"kag": "method:KAG"}, reads={"kag": ("relationships")})
