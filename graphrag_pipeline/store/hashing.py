"""A hash of rows in any order, the same in every version of DuckDB."""

from __future__ import annotations


def rows_hash(relation: str, columns: str = "*") -> str:
    """Return a scalar subquery: the number of rows of a relation, and a hash of them as a multiset.

    The hash is a sum of each row's MD5, so that order does not matter and equal rows do not cancel
    out. ``relation`` and ``columns`` are the project's own SQL.
    """
    return (
        "(SELECT concat_ws(':', count(*), sum(md5_number_lower(to_json(hashed)::VARCHAR)))"
        f" FROM (SELECT {columns} FROM {relation}) hashed)"
    )
