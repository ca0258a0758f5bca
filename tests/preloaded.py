"""What processes of a forkserver import but once; LanceDB itself is left out: it starts threads."""

import hypothesis  # noqa: F401
import openai  # noqa: F401
import pytest  # noqa: F401
from quick_dagster import make_dagster_quick

import graphrag_pipeline.cli.app
import graphrag_pipeline.definitions
import graphrag_pipeline.graph.communities
import graphrag_pipeline.graph.descriptions
import graphrag_pipeline.orchestration.runs
import graphrag_pipeline.query
import graphrag_pipeline.store.vector_store  # noqa: F401
from graphrag_pipeline.store import lance

make_dagster_quick()
with lance.lightly():
    import lance_namespace  # noqa: F401
