"""Patterns that are compiled with their first use."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from graphrag_pipeline.core.patterns import pattern_of

_USED = """
import re
compiled = []
compile = re._compiler.compile
re._compiler.compile = lambda *given: compiled.append(given) or compile(*given)
import graphrag_pipeline.query.methods.listing, graphrag_pipeline.ingest.reading.formats
from graphrag_pipeline.core.patterns import _LatePattern
import sys
made = [
    value
    for name, module in [*sys.modules.items()] if name.startswith("graphrag_pipeline.")
    for value in vars(module).values() if isinstance(value, _LatePattern)
]
ours = {pattern.pattern for pattern in made} & {source for source, *_ in compiled}
print(len(made), len(ours))
"""


def test_a_late_pattern_finds_what_a_compiled_one_does() -> None:
    source, flags, text = r"(?P<day>\d+)\s+(May|June)", re.IGNORECASE, "1 May, 22 JUNE, 3 july"
    late, compiled = pattern_of(source, flags), re.compile(source, flags)
    assert [m.span() for m in late.finditer(text)] == [m.span() for m in compiled.finditer(text)]
    assert late.sub(r"\2", text) == compiled.sub(r"\2", text) == "May, JUNE, 3 july"
    assert late.split(text) == compiled.split(text)
    assert (late.pattern, late.flags, late.groups) == (source, compiled.flags, 2)
    assert late.groupindex == {"day": 1}
    assert pattern_of(rb"\d").findall(b"a1b2") == [b"1", b"2"]


def test_a_wrong_pattern_is_an_error_when_it_is_used() -> None:
    wrong = pattern_of("(")
    with pytest.raises(re.error):
        wrong.search("text")
    assert not hasattr(pattern_of("a"), "searched")


def test_an_import_compiles_next_to_none_of_our_patterns() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _USED], capture_output=True, text=True, check=True, timeout=60
    )
    made, compiled = map(int, done.stdout.split())
    assert made > 200
    assert 20 * compiled < made, "a pattern that is used while a module is imported"
