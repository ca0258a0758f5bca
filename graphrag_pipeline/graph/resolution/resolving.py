"""Resolution as a stage: follow the mentions, ask the model with no connection open, write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb

from graphrag_pipeline.core.prompting import prompt_version
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.graph.resolution.aliases import (
    aliases_state,
    write_aliases,
    write_apart,
    write_words,
)
from graphrag_pipeline.graph.resolution.candidates import Halves, halved, is_slow
from graphrag_pipeline.graph.resolution.deciding import (
    follow_mentions,
    left_apart,
    merge_scope,
    pairs_to_ask,
    resolution_embedder,
    user_pairs,
    user_words,
)
from graphrag_pipeline.graph.resolution.linked_files import linked_files
from graphrag_pipeline.graph.resolution.model_pairs import FAILED, PROMPT, ROLE, ask_about
from graphrag_pipeline.graph.resolution.pairs import Pair
from graphrag_pipeline.graph.resolution.splits import note_splits, split_mentions, split_places
from graphrag_pipeline.graph.resolution.state import (
    find_renamed,
    forget_state,
    look_at_mentions,
    mentions_hash,
    seen_hash,
    titled,
)
from graphrag_pipeline.graph.resolution.user_aliases import UserRow, read_user_aliases
from graphrag_pipeline.ingest.staging import plan_take_in
from graphrag_pipeline.llm.answer_purposes import making
from graphrag_pipeline.llm.configured import answered_by, prompts_folder
from graphrag_pipeline.store.index_store import IndexStore, get_meta, insert, set_meta

RESOLUTION_VERSION = "6"
_STATE, _RULES, _USER = "resolution_state", "resolution_rules", "resolution_user"
_NOW, _NEXT = "", "next_"


@dataclass(frozen=True)
class Resolution:
    """The decisions of resolution.

    ``kept_apart`` counts the pairs that look alike and stay apart, ``failed`` those of them the
    model gave no answer to. ``absent`` are titles of the user's file that no document mentions.
    """

    kept_apart: int
    failed: int
    changed: bool = False
    absent: tuple[str, ...] = ()


def resolve_entities(store: IndexStore, settings: Settings) -> Resolution:
    """Bring ``entity_aliases`` up to date with the mentions the next fold of the graph will see.

    Raises ConfigError for an ``aliases.csv`` that cannot be used, and the model's error when no
    further call can succeed; the aliases are then as they were.
    """
    own = read_user_aliases(settings.aliases_path)
    with store.read() as con:
        plan_take_in(con)
        user = _said(con, settings, own, _NEXT)
        places = split_places(con, user, "next_documents")
        state = _state(settings, user, mentions_hash(con, _NEXT), places)
        summary = replace(_stored(con), absent=_absent(con, own))
        if get_meta(con, _STATE) == state and not summary.failed:
            return summary
        titles = _titles_ahead(con, settings)
    with making(state):
        ahead = _embedded(titles, settings)
        decided: Sequence[Pair] = ()
        if settings.resolution.method == "llm":
            with store.transaction() as con:
                plan_take_in(con)
                user = _said(con, settings, own, _NEXT)
                split_mentions(con, user)
                pairs = _pairs_to_ask(con, settings, user, ahead)
            decided = ask_about(pairs, settings)
    with store.transaction() as con:
        plan_take_in(con)
        user = _said(con, settings, own, _NEXT)
        before = aliases_state(con)
        resolve_within(con, settings, user, ahead, decided)
        places = split_places(con, user, "next_documents")
        set_meta(con, _STATE, _state(settings, user, seen_hash(con), places))
        return replace(_stored(con), changed=aliases_state(con) != before, absent=_absent(con, own))


def resolve_within(
    con: duckdb.DuckDBPyConnection,
    settings: Settings,
    user: Sequence[UserRow],
    ahead: Mapping[str, Halves] | None = None,
    decided: Sequence[Pair] = (),
) -> None:
    """Decide who is who among the mentions that :func:`plan_take_in` shows, and write it.

    ``ahead`` are vectors of titles, ``decided`` pairs that the model has decided. Call it in a
    transaction.
    """
    split_mentions(con, user)
    is_whole = _follow(con, settings, user, ahead or {})
    told = [*user_pairs(con, user), *decided]
    aliases = merge_scope(con, told, user, is_whole=is_whole or bool(decided))
    within = "true" if is_whole or decided else "entity_id IN (SELECT id FROM scope)"
    write_aliases(con, aliases, within)
    write_apart(con, left_apart(con))
    write_words(con, user_words(user, _canonical(con, user)))


def resolve_by_rule(
    con: duckdb.DuckDBPyConnection, settings: Settings, user: Sequence[UserRow]
) -> None:
    """Decide who is who in an index of which nothing was decided before, in a transaction.

    What rules and the user join is joined. Names that are no more than alike are not looked for:
    that is for a model to decide, which is not asked here.
    """
    plan_take_in(con)
    user = _said(con, settings, user, _NEXT)
    note_splits(con, user)
    look_at_mentions(con)
    if settings.resolution.method != "off":
        follow_mentions(con, settings, None)
    write_aliases(con, merge_scope(con, user_pairs(con, user), user, is_whole=True), "true")
    write_words(con, user_words(user, _canonical(con, user)))


def _follow(
    con: duckdb.DuckDBPyConnection,
    settings: Settings,
    user: Sequence[UserRow],
    ahead: Mapping[str, Halves],
) -> bool:
    """Bring what is kept up to date; return whether everything is to be merged again."""
    look_at_mentions(con)
    method = settings.resolution.method
    rules, words = _rules(settings), _words(user)
    was_made_so = get_meta(con, _RULES) == rules
    if not was_made_so:
        forget_state(con)
        set_meta(con, _RULES, rules)
    is_whole = method == "llm" or not was_made_so or get_meta(con, _USER) != words
    set_meta(con, _USER, words)
    if method != "off":
        follow_mentions(con, settings, ahead)
    return is_whole or method == "off"


def _pairs_to_ask(
    con: duckdb.DuckDBPyConnection,
    settings: Settings,
    user: Sequence[UserRow],
    ahead: Mapping[str, Halves],
) -> list[Pair]:
    """Return what rules leave open; what is kept is brought up to date for it."""
    _follow(con, settings, user, ahead)
    told = user_pairs(con, user)
    before = con.execute("FROM entity_aliases").to_arrow_table()
    write_aliases(con, merge_scope(con, told, user, is_whole=True), "true")
    pairs = pairs_to_ask(con, settings)
    con.execute("DELETE FROM entity_aliases")
    insert(con, "entity_aliases", before)
    return pairs


def _rules(settings: Settings) -> str:
    """Return a hash of what the kept state rests on, the hashes of this DuckDB among it."""
    parts: list[object] = [RESOLUTION_VERSION, duckdb.__version__, settings.resolution.method]
    if settings.resolution.method != "off":
        parts.append(resolution_embedder(settings).name)
    return fingerprint(*parts)


def _titles_ahead(con: duckdb.DuckDBPyConnection, settings: Settings) -> list[str]:
    """Return new titles whose vectors take so long to make that nobody is to wait for them."""
    if settings.resolution.method == "off" or not is_slow(resolution_embedder(settings)):
        return []
    look_at_mentions(con)
    keep_imported = settings.resolution.method == "auto"
    if get_meta(con, _RULES) == _rules(settings):
        rows = find_renamed(con, keep_imported=keep_imported)
    else:
        rows = con.sql(titled("seen", keep_imported=keep_imported)).pl()
    return rows.filter("is_open")["title"].unique().to_list()


def _embedded(titles: Sequence[str], settings: Settings) -> dict[str, Halves]:
    if not titles:
        return {}
    return dict(zip(titles, halved(resolution_embedder(settings), titles), strict=True))


def _canonical(con: duckdb.DuckDBPyConnection, user: Sequence[UserRow]) -> dict[str, str]:
    ids = sorted({id for row in user for id in (row.a_id, row.b_id, row.split_id)})
    rows = con.execute(
        "SELECT entity_id, canonical_id FROM entity_aliases WHERE entity_id IN (SELECT unnest(?))",
        [ids],
    )
    return dict(rows.fetchall())


def resolution_current(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether the aliases are those of the mentions, settings and user's file there are now.

    Raises ConfigError if the user's file cannot be used.
    """
    user = _said(con, settings, read_user_aliases(settings.aliases_path))
    places = split_places(con, user)
    return get_meta(con, _STATE) == _state(settings, user, mentions_hash(con), places)


def aliases_changed(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether the user's file says something else than when the aliases were decided.

    Raises ConfigError if it cannot be used.
    """
    user = _said(con, settings, read_user_aliases(settings.aliases_path))
    return get_meta(con, _USER) != _words(user)


def _said(
    con: duckdb.DuckDBPyConnection, settings: Settings, own: Sequence[UserRow], prefix: str = _NOW
) -> list[UserRow]:
    """Return the user's own lines, after those that links to files say."""
    files = linked_files(con, prefix) if settings.resolution.method != "off" else []
    return [*files, *own]


def _words(user: Sequence[UserRow]) -> str:
    return fingerprint(*map(repr, user))


def absent_titles(con: duckdb.DuckDBPyConnection, settings: Settings) -> tuple[str, ...]:
    """Return the titles in the user's file that no document mentions, which may be misspelt.

    Raises ConfigError if the file cannot be used.
    """
    return _absent(con, read_user_aliases(settings.aliases_path))


def _state(settings: Settings, user: Sequence[UserRow], mentions: str, places: str) -> str:
    """Return a hash of all that decides: ``mentions`` of all mentions, ``places`` of splits."""
    options = settings.resolution
    decided_by: list[object] = [_rules(settings), [repr(row) for row in user], mentions]
    if places:
        decided_by.append(places)
    if options.method == "llm":
        prompt = prompt_version(PROMPT, folder=prompts_folder(settings))
        decided_by += [options.max_model_pairs, *answered_by(settings.llm_for(ROLE)), prompt]
    return fingerprint(*decided_by)


def undecided_pairs(con: duckdb.DuckDBPyConnection) -> int:
    """Return how many pairs of titles the model gave no answer to: a run asks again."""
    return _stored(con).failed


def _stored(con: duckdb.DuckDBPyConnection) -> Resolution:
    apart = con.execute(
        "SELECT count(*), count(*) FILTER (reason = ?) FROM entities_kept_apart", [FAILED]
    ).fetchone()
    kept_apart, n_failed = apart or (0, 0)
    return Resolution(kept_apart, n_failed)


def _absent(con: duckdb.DuckDBPyConnection, user: Sequence[UserRow]) -> tuple[str, ...]:
    titles = {id: title for row in user for id, title in row.known.items()}
    if not titles:
        return ()
    existing = con.execute(
        "SELECT DISTINCT entity_id FROM entity_mentions WHERE entity_id IN (SELECT unnest(?))",
        [list(titles)],
    ).fetchall()
    return tuple(sorted(set(titles.values()) - {titles[id] for (id,) in existing}))
