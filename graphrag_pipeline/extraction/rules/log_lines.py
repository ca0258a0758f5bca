"""Lines of logs: what a program writes before a message names nothing, and each is by itself."""

from __future__ import annotations

import re

from graphrag_pipeline.core.patterns import pattern_of

_WITHIN_LINE = "\x1f"
"""White space that, unlike a blank, stands before nothing that begins a line."""
_SECOND = pattern_of(r"\d\d:\d\d:\d\d")
_LEVEL = (
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|CRIT(?:ICAL)?|ALERT|FATAL|SEVERE|PANIC)"
)
_DAY = r"(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d[/.]\d\d[/.]\d{4})[T ]"
_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d| UTC)?"
_MARK = (
    rf"(?:{_LEVEL}\b:?|[-–|][ \t]+[\w.$]{{1,80}}(?=[ \t]+[-–|][ \t]+{_LEVEL}\b)"
    r"|[\w$]{1,40}(?:\.[\w$]{1,40}){1,9}(?::|[ \t]+-)(?=[ \t])"
    r"|\[[^\]\n]{0,80}\]:?|<[^>\n]{1,80}>:?|[\w.$/-]{1,80}\[\d{1,9}\]:?"
    r"|[-–|]{1,3}(?=[ \t]))"
)
_HEAD = pattern_of(
    rf"^(?:\[?{_DAY}{_TIME}\]?:?(?:[ \t]+{_MARK})*"
    rf"|\[?{_TIME}\]?:?(?:[ \t]+{_MARK})+"
    rf"|\[?{_LEVEL}\]?[ \t:]+\[?(?:{_DAY})?{_TIME}\]?(?:[ \t]+{_MARK})*"
    rf"|[A-Z][a-z]{{2}} [ \d]\d {_TIME} [\w.-]{{1,80}} [\w./-]{{1,80}}(?:\[\d{{1,9}}\])?:"
    # A web server's line says nothing in words.
    r"|\S{1,80} \S{1,80} \S{1,80} \[\d\d/[A-Z][a-z]{2}/\d{4}:[^\]\n]{1,20}\] \"[^\n]*"
    r")[ \t]*",
    re.M,
)


def blank_heads(text: str) -> str:
    """Return a text of the same length in which the heads of messages are blank.

    There, a message is a paragraph, and no heading: it does not begin its line.
    """
    if not _SECOND.search(text):
        return text
    return _HEAD.sub(lambda head: "\n" + " " * (len(head.group()) - 2) + _WITHIN_LINE, text)
