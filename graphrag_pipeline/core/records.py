"""Records as text: one line for each field, ``field: value``."""

from __future__ import annotations

import re
from functools import lru_cache

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import singular
from graphrag_pipeline.core.word_lists import word_lists, word_set

SEPARATOR = ": "
"""Stands between a field's name and its value; never in the name."""

_WORDS = word_lists("nlp_records.txt")
_LISTED = frozenset[str]().union(*_WORDS.values())
_JOINTS = word_set("of de du des del dell della dello di do da dos das van von der")
# A word of Hindi or Thai has marks in it, which are no letters.
_WORD = pattern_of("[^\\W\\d_](?:[^\\W\\d_]|[\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e4e])*")
_NUMBERS = pattern_of(r"\.\d+(?=\.|$)")
_LAST_WORD = pattern_of(
    r"(?:[\s_.-]+|(?<=[a-z])(?=[A-Z]))([^\W\d_](?:[^\W\d_A-Z]|(?<=[A-Z])[A-Z])*)$"
)
_CALLED = pattern_of(r"(?<=\.)(?:(?:display|full|real|screen|user)_?name|login)$", re.IGNORECASE)
"""What somebody within a record is called by: assignee.displayName, as programs export it."""
_HUMP = pattern_of(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def field_line(path: str, value: str) -> str:
    """Return the line of a field in a record's text."""
    return f"{path.replace(SEPARATOR, ':')}{SEPARATOR}{value}" if path else value


def record_line(title: str, line: str) -> str:
    """Return a record's line as it is quoted away from its record: with the record's title.

    >>> record_line("Marigold", "captain: Ida Brandt")
    'Marigold — captain: Ida Brandt'
    """
    return f"{title} — {line}"


def names_nothing(value: str) -> bool:
    """Whether the value of a field is a number, a date or plain words, and no name.

    >>> names_nothing("12 m"), names_nothing("May 2019"), names_nothing("in use")
    (True, True, True)
    >>> names_nothing("Pier 39"), names_nothing("Baltor Freight")
    (False, False)
    """
    has_capital = any(sign.isalpha() and not sign.islower() for sign in value)
    if not has_capital or value[0].isdigit() or value.lower() in _WORDS["nothing"]:
        return True
    words = _WORD.findall(value.lower())
    return any(map(str.isdigit, value)) and all(word in _WORDS["date"] for word in words)


def named_key(line: str, name: str) -> str:
    """Return the line of a key with the name of what it refers to.

    >>> named_key("home_port: P1", "Port Rowan")
    'home_port: Port Rowan (P1)'
    """
    path, separator, key = line.partition(SEPARATOR)
    return f"{path}{separator}{name} ({key})"


def parted(name: str) -> str:
    """Return the name of a field with its words apart.

    >>> parted("order.dueDate"), parted("Kunden-Nr")
    ('order.due Date', 'Kunden-Nr')
    """
    return _HUMP.sub(" ", name)


@lru_cache(maxsize=1 << 12)
def field_words(name: str) -> tuple[str, ...]:
    """Return the words in a field's name: lower case, singular, however they are joined.

    Of a path the last name counts.

    >>> field_words("crew.homeHarbours_ID")
    ('home', 'harbour', 'id')
    >>> field_words("Kunden-Nr.")
    ('kunden', 'nr')
    """
    spaced = parted(name.rstrip(". ").rsplit(".", 1)[-1])
    words = (word.lower() for word in _WORD.findall(spaced))
    return tuple(word if word in _LISTED else singular(word) for word in words)


@lru_cache(maxsize=64)
def name_columns(columns: tuple[str, ...]) -> tuple[str, str]:
    """Return which of some columns hold given and family names; empty where not both are there.

    >>> name_columns(("id", "First Name", "last_name"))
    ('First Name', 'last_name')
    """
    found = [
        next((name for name in columns if _is_part_of_name(name, section)), "")
        for section in ("first_name", "last_name")
    ]
    return (found[0], found[1]) if all(found) else ("", "")


def _is_part_of_name(column: str, section: str) -> bool:
    words = field_words(column)
    return bool(words) and words[0] in _WORDS[section] and words[1:] in ((), ("name",))


def field_head(path: str) -> str:
    """Return the word that says what a field holds; empty where its name does not.

    >>> field_head("crew.2.home_harbour_name"), field_head("director.name"), field_head("id")
    ('harbour', 'director', '')
    >>> field_head("place of birth"), field_head("Nom du client")
    ('place', 'client')
    """
    for name in reversed(_CALLED.sub("name", path).split(".")):
        words = list(field_words(name))
        while words and (words[-1] in _WORDS["label"] or words[-1] in _WORDS["key"]):
            words.pop()
        if words:
            joint = next((n for n, word in enumerate(words) if n and word in _JOINTS), 0)
            has_head = joint and words[joint - 1] not in _WORDS["label"]
            return words[joint - 1] if has_head else words[-1]
    return ""


def relation_of(path: str) -> str:
    """Return what relates a record to what one of its fields names or is a key of.

    That is the field's name as it is written, without what only says that it is a key or a name.

    >>> relation_of("home_harbour_id"), relation_of("crew.2.name"), relation_of("captainName")
    ('home_harbour', 'crew', 'captain')
    >>> relation_of("fields.assignee.displayName"), relation_of("user.login")
    ('fields.assignee', 'user')
    >>> relation_of("id"), relation_of("name")
    ('id', 'name')
    """
    column = _CALLED.sub("name", column_of(path))
    while match := _LAST_WORD.search(column):
        word = singular(match.group(1).lower())
        if not match.start() or not (word in _WORDS["key"] or word in _WORDS["label"]):
            break
        column = column[: match.start()]
    return column


def column_of(path: str) -> str:
    """Return the column that a path belongs to: the path without the numbers of lists.

    >>> column_of("crew.2.name")
    'crew.name'
    """
    return _NUMBERS.sub("", path)
