"""The methods. One of this package is a module with a :class:`Method`, and a line in ``registry``.

One of your own is registered: :func:`register_method`, or an entry point.
"""

from graphrag_pipeline.query.methods.listing import list_methods, method_values
from graphrag_pipeline.query.methods.method import Method, parameter_rows
from graphrag_pipeline.query.methods.registry import (
    METHODS,
    MODEL_METHODS,
    method_named,
    methods_taking,
    read_method,
    register_method,
    unregister_method,
)

__all__ = [
    "METHODS",
    "MODEL_METHODS",
    "Method",
    "list_methods",
    "method_named",
    "method_values",
    "methods_taking",
    "parameter_rows",
    "read_method",
    "register_method",
    "unregister_method",
]
