"""Language and embedding models: each call paid once, kept, counted and bounded.

Names are imported when they are first used: an error of a model can be named without its client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.core.lazy import lazy_names

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import (
        CompletionStream as CompletionStream,
        ModelClient as ModelClient,
    )
    from graphrag_pipeline.llm.completion import Completion as Completion
    from graphrag_pipeline.llm.errors import (
        BudgetExceededError as BudgetExceededError,
        ModelError as ModelError,
        ModelOutputError as ModelOutputError,
        TerminalModelError as TerminalModelError,
        TransientModelError as TransientModelError,
    )
    from graphrag_pipeline.llm.ledger import (
        calls_since as calls_since,
        last_position as last_position,
    )
    from graphrag_pipeline.llm.options import LlmOptions as LlmOptions, Secret as Secret
    from graphrag_pipeline.llm.requests import ChatRequest as ChatRequest
    from graphrag_pipeline.llm.running import run_calls as run_calls

__getattr__, __dir__ = lazy_names(__name__, __file__)
