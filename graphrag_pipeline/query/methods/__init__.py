"""The methods. One of this package is a module with a :class:`Method`, and a line in ``registry``.

One of your own is registered: :func:`register_method`, or an entry point.
"""

from graphrag_pipeline.query.methods.listing import (
    list_methods as list_methods,
    method_values as method_values,
)
from graphrag_pipeline.query.methods.method import (
    Method as Method,
    parameter_rows as parameter_rows,
)
from graphrag_pipeline.query.methods.registry import (
    METHODS as METHODS,
    MODEL_METHODS as MODEL_METHODS,
    method_named as method_named,
    methods_taking as methods_taking,
    read_method as read_method,
    register_method as register_method,
    unregister_method as unregister_method,
)
