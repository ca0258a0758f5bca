"""The one definition of clean text: offsets kept by later stages refer to what comes out here."""

from __future__ import annotations

from graphrag_pipeline.core.patterns import pattern_of

_RARE_NEWLINES = "\x0b\x0c\x85\u2028\u2029"
NEWLINES = f"\r\n?|[{_RARE_NEWLINES}]"
REMOVED = (
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # colours of a terminal
    "|\x1b\\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\\\)"  # its titles, and addresses of its links
    "|[\x00-\x08\x0e-\x1f\x7f-\x9f"  # control characters
    "\u200b\u2060\u200e\u200f\u202a-\u202e\u2066-\u2069"  # without width: they divide names
    "\u00ad\ufeff\ufffe\uffff]"  # soft hyphen, byte-order mark, non-characters
)
_NEWLINES = pattern_of(NEWLINES)
_REMOVED = pattern_of(f"{REMOVED}|[\ud800-\udfff]")  # and surrogates, which UTF-8 cannot encode


def clean_text(text: str) -> str:
    """Return text with "\\n" newlines, nothing that is not seen, and no white space at its ends.

    Nothing else changes: no Unicode normalisation, no white space collapsed. Cleaning clean text
    changes nothing.
    """
    return without_controls(text).strip()


def without_controls(text: str) -> str:
    """Return text as :func:`clean_text` does, with the white space at its ends."""
    text = with_newlines(text)
    if text.replace("\n", " ").replace("\t", " ").isprintable():
        return text
    return _REMOVED.sub("", text)


def with_newlines(text: str) -> str:
    """Return text in which all that ends a line is "\n"."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _NEWLINES.sub("\n", text) if any(each in text for each in _RARE_NEWLINES) else text


def one_line(text: str) -> str:
    """Return clean text on one line, white space collapsed."""
    return " ".join(clean_text(text).split())
