"""Preformatted text of web pages is code, unless it reads as prose."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.ingest.reading import ReadingOptions, read_file

LICENCE = """Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell it.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY."""
LETTER = """From: Alice Smith <alice@example.org>
Subject: The harbour

Dear Bob, I have seen the harbour of Tarn yesterday, and it is in a very bad state.
The old piers were built of stone and should stay. What do you think about it?
Let us meet on Monday. Alice"""
POEM = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate.
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date."""
PYTHON = """def walk(path):
    \"\"\"Return what is there. It may be nothing. Ask again later if so, and then give up.\"\"\"
    for name in path.iterdir():
        print("It is here", name)
    return sorted(path.iterdir())"""
SESSION = """$ git status
On branch main
Your branch is up to date with the remote one. There is nothing to commit at all.
$ git log --oneline -2
abc123 Mend the thing. Then the other one too."""
SETTINGS = """# The name of the server. It must be there, and nobody else may have it.
# The default is the name of the host that it runs on. Do not change it.
server_name = example
# The port of it. Use any that is free on this host.
port = 80"""
COLUMNS = """Option      What it does      Where it is told of
name        It names.         See the first page of all.
port        It opens.         See the second page of all.
root        It roots.         See the third page of all."""
SHORT = "Alice Smith left."


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((text, None) for text in (LICENCE, LETTER, POEM)),
        *((text, "code") for text in (PYTHON, SESSION, SETTINGS, COLUMNS, SHORT)),
    ],
)
def test_preformatted_text_is_code_unless_it_reads_as_prose(text: str, kind: str | None) -> None:
    written = text.replace("<", "&lt;")
    page = f"<h1>Tarn</h1><p>Before it.</p><pre>{written}</pre>".encode()
    (document,) = read_file(Path("a.html"), ReadingOptions(), data=page).documents
    assert text in document.text
    place = document.text.index(text)
    kinds = [b.kind for b in document.blocks if b.start <= place < b.end]
    assert kinds == ([kind] if kind else [])
