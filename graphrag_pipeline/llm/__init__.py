"""Language and embedding models: each call paid once, kept, counted and bounded."""

from graphrag_pipeline.llm.client import Completion, CompletionStream, ModelClient
from graphrag_pipeline.llm.errors import (
    BudgetExceededError,
    ModelError,
    ModelOutputError,
    TerminalModelError,
    TransientModelError,
)
from graphrag_pipeline.llm.ledger import calls_since, last_position
from graphrag_pipeline.llm.options import LlmOptions, Secret
from graphrag_pipeline.llm.requests import ChatRequest
from graphrag_pipeline.llm.running import run_calls

__all__ = [
    "BudgetExceededError",
    "ChatRequest",
    "Completion",
    "CompletionStream",
    "LlmOptions",
    "ModelClient",
    "ModelError",
    "ModelOutputError",
    "Secret",
    "TerminalModelError",
    "TransientModelError",
    "calls_since",
    "last_position",
    "run_calls",
]
