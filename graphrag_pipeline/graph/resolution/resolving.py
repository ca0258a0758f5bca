"""Resolution as a stage: read, decide with no connection open, write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb

from graphrag_pipeline.core.prompting import prompt_version
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.graph.resolution.aliases import aliases_state, write_aliases, write_words
from graphrag_pipeline.graph.resolution.asking import FAILED, PROMPT
from graphrag_pipeline.graph.resolution.deciding import (
    decide,
    resolution_embedder,
    user_words,
)
from graphrag_pipeline.graph.resolution.mentions import (
    as_the_graph_will_see,
    mentions_hash,
    read_mentions,
)
from graphrag_pipeline.graph.resolution.user_aliases import UserRow, read_user_aliases
from graphrag_pipeline.llm.configured import answered_by, prompts_folder
from graphrag_pipeline.llm.purpose import making
from graphrag_pipeline.store.index_store import get_meta, set_meta
from graphrag_pipeline.store.workspace import Workspace

RESOLUTION_VERSION = "1"
_STATE = "resolution_state"
_NOW, _NEXT = "entity_mentions", "next_entity_mentions"


@dataclass(frozen=True)
class Resolution:
    """What resolution decided.

    ``merged`` counts entities folded into others, by method (rule, user, model); ``kept_apart``
    the pairs that look alike and stay apart, ``failed`` those of them the model gave no answer
    to. ``absent`` are titles of the user's file that no document mentions.
    """

    merged: Mapping[str, int]
    kept_apart: int
    failed: int
    changed: bool = False
    absent: tuple[str, ...] = ()


def resolve_entities(workspace: Workspace) -> Resolution:
    """Bring ``entity_aliases`` up to date with the mentions the next fold of the graph will see.

    Raises ConfigError for an ``aliases.csv`` that cannot be used, and the model's error when no
    further call can succeed; the aliases are then as they were.
    """
    settings, store = workspace.settings, workspace.store
    user = read_user_aliases(settings.aliases_path)
    with as_the_graph_will_see(store) as con:
        state = _state(con, settings, user, _NEXT)
        absent = _absent(con, user, _NEXT)
        summary = _stored(con)
        if get_meta(con, _STATE) == state and not summary.failed:
            return replace(summary, absent=absent)
        mentioned = read_mentions(con)
    with making(state):
        aliases, apart = decide(mentioned, settings, user)
    with store.transaction() as con:
        before = aliases_state(con)
        write_aliases(con, aliases, apart)
        write_words(con, user_words(user, aliases))
        set_meta(con, _STATE, state)
        return replace(_stored(con), changed=aliases_state(con) != before, absent=absent)


def resolution_current(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether the aliases are those of the mentions, settings and user's file there are now.

    Raises ConfigError if the user's file cannot be used.
    """
    user = read_user_aliases(settings.aliases_path)
    return get_meta(con, _STATE) == _state(con, settings, user)


def absent_titles(con: duckdb.DuckDBPyConnection, settings: Settings) -> tuple[str, ...]:
    """Return the titles in the user's file that no document mentions, which may be misspelt.

    Raises ConfigError if the file cannot be used.
    """
    return _absent(con, read_user_aliases(settings.aliases_path))


def _state(
    con: duckdb.DuckDBPyConnection,
    settings: Settings,
    user: Sequence[UserRow],
    mentions: str = _NOW,
) -> str:
    """Return a hash of all that decides."""
    options = settings.resolution
    rows = [repr(row) for row in user]
    decided_by: list[object] = [
        RESOLUTION_VERSION,
        options.method,
        rows,
        mentions_hash(con, mentions),
    ]
    if options.method != "off":
        decided_by.append(resolution_embedder(settings).name)
    if options.method == "llm":
        prompt = prompt_version(PROMPT, folder=prompts_folder(settings))
        decided_by += [options.max_model_pairs, *answered_by(settings.llm), prompt]
    return fingerprint(*decided_by)


def undecided_pairs(con: duckdb.DuckDBPyConnection) -> int:
    """Return how many pairs of titles the model gave no answer to: a run asks again."""
    return _stored(con).failed


def _stored(con: duckdb.DuckDBPyConnection) -> Resolution:
    n_merged_by = con.execute("SELECT method, count(*) FROM entity_aliases GROUP BY ALL").fetchall()
    apart = con.execute(
        "SELECT count(*), count(*) FILTER (reason = ?) FROM entities_kept_apart", [FAILED]
    ).fetchone()
    kept_apart, n_failed = apart or (0, 0)
    return Resolution(dict(n_merged_by), kept_apart, n_failed)


def _absent(
    con: duckdb.DuckDBPyConnection, user: Sequence[UserRow], mentions: str = _NOW
) -> tuple[str, ...]:
    titles = {id: title for row in user for id, title in row.known.items()}
    if not titles:
        return ()
    existing = con.execute(
        f"SELECT DISTINCT entity_id FROM {mentions} WHERE entity_id IN (SELECT unnest(?))",
        [list(titles)],
    ).fetchall()
    return tuple(sorted(set(titles.values()) - {titles[id] for (id,) in existing}))
