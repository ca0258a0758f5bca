"""Conversations in exports of chats: a document each, a line for each message, by whom and when."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.model import (
    ReadDocument,
    Scalar,
    SlackDay,
    clean_metadata,
)

_MESSAGES = ("messages", "chat_messages", "conversation", "comments", "replies", "MessageList")
_TITLES = ("title", "name", "room_name", "topic", "subject", "displayName", "channel")
_WHO = [
    "author",
    "displayName",
    "from",
    "sender",
    "sender_name",
    "profileName",
    "user_profile",
    "user",
    "username",
    "user_name",
    "role",
    "from_id",
]
_NAMES = [
    "real_name",
    "displayName",
    "display_name",
    "nickname",
    "global_name",
    "name",
    "username",
    "user",
    "email",
    "role",
]
_SERVICE = pattern_of(
    r"service|system(?:EventMessage)?|unknownFutureValue|(?:ThreadActivity|Event)/\w+"
    r"|(?:channel|group)_\w+|bot_(?:add|remove)|GuildMemberJoin"
)
"""What kinds of entries of a conversation are called that nobody says."""
_WHEN = ("create_time", "created_at", "createdDateTime", "timestamp", "ts", "date", "datetime")
_MORE_WHEN = ("originalarrivaltime", "time", "sent_at", "sent", "timestamp_ms", "origin_server_ts")
_SAID = ("text", "content", "body", "message", "msg", "parts", "value")
_SENT = ("attachments", "files", "file", "photo", "media", "deletedDateTime")
"""What is sent without words, or was taken back."""
_NEARLY_ALL = 0.8
_DEPTH = 4
_TAG = pattern_of(r"<[^<>\n]{1,500}>")
_BETWEEN_WORDS = pattern_of(
    r"</?(?:p|br|div|li|ul|ol|tr|td|blockquote|h\d)\b[^<>\n]{0,500}>", re.IGNORECASE
)
_TWEETED_AT = "%a %b %d %H:%M:%S %z %Y"
_SLACK_TIME = pattern_of(r"\d{9,11}\.\d{6}")
_SLACK_MARK = pattern_of(r"<([@#!]?)([^<>|\n]{1,500})(?:\|([^<>\n]{1,200}))?>")
UNDATED = "undated"
"""Stands where others of a conversation have their time."""
_EARLIEST, _LATEST, _MILLISECONDS = 10**8, 10**10, 1000
_MOST_PEOPLE = 50


@dataclass(frozen=True)
class _Message:
    who: str
    when: str
    said: str


def conversations_in(value: object, day: SlackDay | None = None) -> list[ReadDocument] | None:
    """Return the conversations that an object is, or that all objects of an array are; else None.

    A conversation is an object with an array of messages, of which nearly all say who wrote what.
    So is an array of what calls itself messages, as Slack exports a ``day`` of a channel, and Teams
    a chat, and what somebody posted, in an archive of Mastodon or Twitter.
    """
    if posts := _posts(value):
        value = {"title": "Posts", "messages": posts}
    elif isinstance(value, list) and _is_channel(value):
        value = {"messages": value, **({"title": day.title, "channel": day.channel} if day else {})}
    items = value if isinstance(value, list) else [value]
    names = day.names if day else {}
    read = [_conversation(item, number, names) for number, item in enumerate(items, 1)]
    conversations = [document for document in read if document]
    if not conversations or len(conversations) < len(items):
        return None
    return conversations if isinstance(value, list) else [replace(conversations[0], key="")]


def _posts(value: object) -> list[_Message]:
    """Return what an archive says that somebody posted; of what others wrote it has the address."""
    if isinstance(value, Mapping) and value.get("type") == "OrderedCollection":
        items = value.get("orderedItems")
        notes = [_within(item, "object") for item in items] if isinstance(items, list) else []
        posts = [_Message(_author(n), _time(n.get("published")), _noted(n)) for n in notes if n]
    else:
        tweets = [_within(item, "tweet") for item in value] if isinstance(value, list) else []
        if not all(tweets):
            return []
        posts = [_Message(_name(t.get("user")), _tweeted(t), _tweet(t)) for t in tweets]
    return [post for post in posts if post.said]


def _within(item: object, field: str) -> Mapping[str, object]:
    inner = item.get(field) if isinstance(item, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _author(note: Mapping[str, object]) -> str:
    return one_line(str(note.get("attributedTo", ""))).rstrip("/").rpartition("/")[2]


def _noted(note: Mapping[str, object]) -> str:
    warning, said = _said(note.get("summary")), _said(note.get("content"))
    return f"{warning}: {said}" if warning and said else said


def _tweet(tweet: Mapping[str, object]) -> str:
    return html.unescape(_said(tweet.get("full_text") or tweet.get("text")))


def _tweeted(tweet: Mapping[str, object]) -> str:
    written = str(tweet.get("created_at", ""))
    try:
        return datetime.strptime(written, _TWEETED_AT).isoformat()
    except ValueError:
        return _time(written)


def _is_channel(items: Sequence[object]) -> bool:
    told = [item for item in items if isinstance(item, Mapping) and "message" in _kinds(item)]
    return bool(items) and len(told) >= _NEARLY_ALL * (len(items) - sum(map(_says_nothing, items)))


def _kinds(item: Mapping[str, object]) -> list[object]:
    """Return what an entry says it is."""
    return [item.get(field) for field in ("type", "subtype", "messageType", "messagetype")]


def _conversation(value: object, number: int, names: Mapping[str, str]) -> ReadDocument | None:
    if not isinstance(value, Mapping):
        return None
    value = _in_a_row(value)
    name, items = next(((n, value[n]) for n in _MESSAGES if n in value), ("", ()))
    if not isinstance(items, list) or not items:
        return None
    items = [item for above in items for item in [above, *_replies(above)]]
    items = _with_slack_names([item for item in items if not _says_nothing(item)], names)
    messages = [
        message
        for item in items
        if (message := item if isinstance(item, _Message) else _message(item))
    ]
    if not messages or len(messages) < _NEARLY_ALL * len(items):
        return None
    if messages[0].when > messages[-1].when > "":
        messages.reverse()  # the latest stands first
    undated = f"[{UNDATED}] " if any(message.when for message in messages) else ""
    text = "\n".join(_line(message, undated) for message in messages)
    beside = {n: item for n, item in value.items() if n != name}
    title = next((t for n in _TITLES if (t := _name(beside.get(n)))), "")
    people = dict.fromkeys(message.who for message in messages)
    about: dict[str, Scalar] = {
        **{n: item for n, item in beside.items() if isinstance(item, str | int | bool)},
        "from": ", ".join([*people][:_MOST_PEOPLE]),
        "date": next((message.when for message in messages if message.when), ""),
    }
    title = title or f"Conversation of {about['from']}"[:200]
    key = one_line(str(value.get("id") or value.get("uuid") or f"conversation-{number}"))
    return ReadDocument(key, title, text, clean_metadata(about))


def _replies(item: object) -> list[object]:
    """Return what is said below a message, of which Slack has the numbers alone."""
    inner = item.get("replies") if isinstance(item, Mapping) else None
    return [each for each in inner if _message(each)] if isinstance(inner, list) else []


def _in_a_row(value: Mapping[str, object]) -> Mapping[str, object]:
    """Return a conversation kept as a tree, as ChatGPT exports it, as the row that is shown.

    That leads to its current node: what was asked or answered anew beside it is left out.
    """
    nodes = value.get("mapping")
    if not isinstance(nodes, Mapping) or not all(
        isinstance(node, Mapping) and "message" in node and "parent" in node
        for node in nodes.values()
    ):
        return value
    row: list[object] = []
    place = value.get("current_node") or next(reversed(nodes), None)
    while isinstance(place, str) and place in nodes and len(row) < len(nodes):
        row.append(nodes[place]["message"])
        place = nodes[place]["parent"]
    shown = [message for message in reversed(row) if _is_said(message)]
    return {n: item for n, item in value.items() if n != "mapping"} | {"messages": shown}


def _is_said(message: object) -> bool:
    """Whether a message is one that somebody reads: not of the system, and with words."""
    if not isinstance(message, Mapping) or _message(message) is None:
        return False
    return _name(message.get("author")) not in ("system", "tool")


def _line(message: _Message, undated: str) -> str:
    when = message.when.replace("T", " ")[:16]
    who = f"{message.who}: " if message.who else ""
    return f"{f'[{when}] ' if when else undated}{who}{message.said}"


def _says_nothing(value: object) -> bool:
    """Whether an entry is no message: somebody came or left, or sent a picture without words."""
    if not isinstance(value, Mapping):
        return False
    if any(isinstance(kind, str) and _SERVICE.fullmatch(kind) for kind in _kinds(value)):
        return True
    is_sent = any(map(value.get, _SENT))
    return is_sent and not any(_said(value.get(field)) for field in _SAID) and not _sent(value)


def _sent(value: Mapping[str, object]) -> str:
    """Return the words of what a program posts to Slack, and the titles of files that are sent."""
    said: list[str] = []
    sent = (value.get(field) for field in ("attachments", "files"))
    for item in (item for items in sent if isinstance(items, list) for item in items):
        if isinstance(item, Mapping):
            words = [_said(item.get(field)) for field in ("pretext", "title", "text")]
            said += list(filter(None, words)) or [_said(item.get("fallback"))]
    return clean_text("\n".join(filter(None, said)))


def _with_slack_names(items: list[object], listed: Mapping[str, str]) -> list[object]:
    """Return messages of Slack with who is meant by ids, as far as lists or a message tell it."""
    if not any(isinstance(i, Mapping) and _SLACK_TIME.fullmatch(str(i.get("ts"))) for i in items):
        return items
    told = [item for item in items if isinstance(item, Mapping)]
    ids = [(item.get("user"), _name(item.get("user_profile"))) for item in told]
    names = {user: name for user, name in ids if isinstance(user, str) and name} | dict(listed)

    def shown(mark: re.Match[str]) -> str:
        sign, of, label = mark.groups()
        return (sign if sign == "#" else "") + (names.get(of) or label or of)

    def read(item: Mapping[str, object]) -> dict[str, object]:
        text, user = item.get("text"), item.get("user")
        if not text or (item.get("attachments") and isinstance(text, str)):
            text = f"{text or ''}\n{_sent(item)}".strip()
        said = html.unescape(_SLACK_MARK.sub(shown, text)) if isinstance(text, str) else text
        name = names.get(user) if isinstance(user, str) else None
        return {**item, "text": said, **({"author": name} if name else {})}

    return [read(item) if isinstance(item, Mapping) else item for item in items]


def _message(value: object) -> _Message | None:
    """Return a message; None for what says not who wrote it, or nothing."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("message"), Mapping):
        value = {**value, **value["message"]}
    who = next((name for field in _WHO if (name := _name(value.get(field)))), "")
    said = next((text for field in _SAID if (text := _said(value.get(field)))), "")
    when = next((t for field in _WHEN + _MORE_WHEN if (t := _time(value.get(field)))), "")
    return _Message(who, when, said) if who and said else None


def _name(value: object, depth: int = 0) -> str:
    """Return a name: a text, or what an object says it is called."""
    if isinstance(value, Mapping) and depth < _DEPTH:
        inner = [name for field in _NAMES if (name := _name(value.get(field), depth + 1))]
        return next((name for name in inner if " " in name), inner[0] if inner else "")
    return one_line(value)[:200] if isinstance(value, str) else ""


def _said(value: object, depth: int = 0, *, is_markup: bool = False) -> str:
    """Return the words of a message, which may be in parts; of markup its text."""
    if isinstance(value, str):
        is_markup |= value.lstrip().startswith("<") and value.rstrip().endswith(">")
        return _of_markup(value) if is_markup else clean_text(value)
    if depth >= _DEPTH:
        return ""
    if isinstance(value, Mapping):
        is_html = value.get("contentType") == "html"
        parts = (_said(value.get(field), depth + 1, is_markup=is_html) for field in _SAID)
        return next(filter(None, parts), "")
    if isinstance(value, Sequence):
        return clean_text(" ".join(filter(None, (_said(part, depth + 1) for part in value))))
    return ""


def _of_markup(text: str) -> str:
    return one_line(html.unescape(_TAG.sub("", _BETWEEN_WORDS.sub(" ", text))))


def _time(value: object) -> str:
    """Return a time as ISO 8601 writes it: of a number, seconds or milliseconds since 1970."""
    if isinstance(value, str) and not re.fullmatch(r"\d{9,13}(?:\.\d{1,9})?", value):
        return one_line(value)[:40]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    seconds = float(value)
    if seconds > _LATEST:
        seconds /= _MILLISECONDS
    if not math.isfinite(seconds) or not _EARLIEST < seconds < _LATEST:
        return ""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat()
