"""A model's answers, played: records, reports and summaries as long as those a model writes.

Replies to questions are those of the tests' player, on the names in the question.

They are made of the words of what was asked, so the graph of a corpus is one that hangs together.
The sizes are those of GPT-4o's recorded extractions and reports (``llm_outputs`` of the shared
data): descriptions of about 110 characters, reports of about 4,000 (1,100 tokens as JSON).
"""

from __future__ import annotations

import json
import math
import re
import zlib

from llm_helpers import document_in, stage_of
from model_server import Messages
from query_player import STEPS, play, step_of

from graphrag_pipeline.extraction.model.tuples import parse_tuples

_SHOWN = re.compile(r"<(\w+) id=\w+>\n(.*)\n</\1 id=", re.DOTALL)
_NAME = re.compile(r"\b[A-Z][a-z]{2,}(?: [A-Z][a-z]+){0,2}")
_LONG_WORD = re.compile(r"\b[a-z]{8,}\b")
_ROW_ID = re.compile(r"^(\d+),", re.MULTILINE)
_MEMBER = re.compile(r"^- (.+?) \(", re.MULTILINE)
_PAIR = re.compile(r'"pair": (\d+)')
_FEWEST, _MOST, _OF_A_CHUNK = 3, 18, 0.36
_DESCRIBED = 85
_FINDINGS = 5
_TYPES = ("PERSON", "ORGANIZATION", "GEO", "EVENT")
_NAMED_ONLY, _RELATED_ONLY = "How they are related is asked for later", "between these entities"
_AS_JSON = "as one JSON object: "
_NUMBERED = re.compile(r"^(\d+)[.:)]? ", re.MULTILINE)
_NUMBERED_LINE = re.compile(r"^(\d+)\. (?:\[place \d+\] )?(.+)$", re.MULTILINE)
_UP_TO = re.compile(r"Write (?:up to )?(\d+) (?:questions|assertions)")
_WANTED = re.compile(r"Write (\d+) questions|Name (\d+) different tasks|Think of (\d+)")


def played_answer(messages: Messages) -> str:
    """Return what a model might say: the same to the same messages, and at once."""
    stage, system = stage_of(messages), messages[0]["content"]
    if any(words in system for words in STEPS.values()):
        return _reply(messages)
    if evaluated := _evaluated(system, messages[-1]["content"]):
        return evaluated
    if "as summary entities" in system:
        return _summary_entities(messages[-1]["content"])
    if "numbered pairs of names" in system:
        return _decisions(messages[-1]["content"])
    if _AS_JSON in system and (document := document_in(messages)):
        return _graph(document, system)
    if stage == "claims":
        return _claims(document_in(messages))
    if stage == "check":
        return "YES" if _number(document_in(messages)) % 2 else "NO"
    if stage in ("extract", "glean"):
        return records_of(document_in(messages), missed=stage == "glean", system=system)
    if stage == "report":
        return _report(messages[1]["content"])
    shown = _SHOWN.search(messages[-1]["content"])
    return " ".join((shown[2] if shown else "").split()[:180])


def records_of(text: str, *, missed: bool, system: str = "") -> str:
    """Return the records of a text: three to eighteen entities and as many relationships.

    A tenth more is ``missed`` at first and found when asked again. Who is asked in two passes
    gives entities, and then the relationships between them.
    """
    names = _names(text)
    first = len(names) - max(1, len(names) // 10)
    pairs = [(a, names[(i + 1 + i % 3) % len(names)]) for i, a in enumerate(names)]
    shown = slice(first, None) if missed else slice(None, first)
    entities = [
        f'("entity"<|>{name}<|>{_TYPES[_number(name) % 4]}<|>{name} {_words_near(name, text)})'
        for name in names[shown]
    ]
    relationships = [
        f'("relationship"<|>{a}<|>{b}<|>{a} and {b} {_words_near(b, text)}<|>{_number(a) % 10 + 1})'
        for a, b in pairs[shown]
        if a != b
    ]
    records = [] if _RELATED_ONLY in system else entities
    if _NAMED_ONLY not in system:
        records = [*records, *relationships]
    return "\n##\n".join([*records, "<|COMPLETE|>"])


def _graph(text: str, system: str) -> str:
    """Return the records of a text as JSON, the lists that are asked for."""
    parsed = parse_tuples(records_of(text, missed=False))
    rows: dict[str, list[dict[str, str]]] = {}
    if "were found in it" not in system:
        rows["entities"] = [
            {"name": e.title, "type": e.type, "description": e.description} for e in parsed.entities
        ]
    if "are related" in system:
        rows["relationships"] = [
            {"source": r.source, "target": r.target, "description": r.description}
            for r in parsed.relationships
        ]
    return json.dumps(rows)


def _claims(text: str) -> str:
    names = _names(text)[:4]
    claims = [
        f"({name}<|>NONE<|>REMARK<|>TRUE<|>NONE<|>NONE<|>{name} {_words_near(name, text)}<|>{name})"
        for name in names
    ]
    return "\n##\n".join([*claims, "<|COMPLETE|>"])


def _evaluated(system: str, shown: str) -> str | None:
    """Return what a model says that judges answers, counts claims or thinks of questions."""
    if "which answer is better" in system:
        return json.dumps({"reasoning": "It says more.", "winner": _number(shown) % 3})
    if "numbered sentences of somebody's answer" in system:
        sentences = [
            {"number": int(n), "claims": [f"Claim {n} holds."]} for n in _NUMBERED.findall(shown)
        ]
        return json.dumps({"sentences": sentences})
    if '"sources"' in system:
        return _with_assertions(system, shown)
    if "themes that run through" in system:
        numbers = [int(n) for n in _NUMBERED.findall(shown)]
        themes = [numbers[n::2] for n in range(2)]
        return json.dumps(
            {"themes": [{"theme": f"theme {n}", "questions": of} for n, of in enumerate(themes)]}
        )
    if '{"met":' in system:
        return json.dumps({"met": [int(n) for n in _NUMBERED.findall(shown)][::2]})
    if '"relevant"' in system:
        return json.dumps({"reasoning": "It names it.", "relevant": _number(shown) % 2 == 0})
    if '"score"' in system:
        return json.dumps({"reasoning": "It says much.", "score": _number(shown) % 10 + 1})
    if '"second":' in system:
        return json.dumps({"first": [1], "second": [1]})
    if wanted := _WANTED.search(system):
        kind = ("questions", "tasks", "personas")[(wanted.lastindex or 1) - 1]
        names = _names(shown)
        number = int(wanted[wanted.lastindex or 1])
        words = _LONG_WORD.findall(shown)[_number(shown) % 97 :] or ["nothing"]
        texts = [
            f"What of {names[n % len(names)]}, {kind} {n}: {' '.join(words[5 * n : 5 * n + 5])}?"
            for n in range(number)
        ]
        return json.dumps({kind: texts})
    return None


def _with_assertions(system: str, shown: str) -> str:
    """Return assertions, or questions with theirs, each from a long line and the one halfway.

    A question has the line's last words, so that few are alike.
    """
    lines = sorted(_NUMBERED_LINE.findall(shown), key=lambda line: -len(line[1]))
    number = int((_UP_TO.search(system) or [0, 2])[1])
    drafts = []
    for n, (place, line) in enumerate(lines[:number]):
        other, _ = lines[(n + max(1, len(lines) // 2)) % len(lines)]
        names = _names(line)[:3]
        sources = [int(place), int(other)]
        assertions = [{"statement": f"{line[:120]}", "sources": sources}]
        question = f"What is said of {', '.join(names)}: {' '.join(line.split()[-9:])}?"
        drafts.append({"question": question, "names": names, "assertions": assertions})
    if '{"questions"' in system:
        return json.dumps({"questions": drafts})
    return json.dumps({"assertions": [draft["assertions"][0] for draft in drafts]})


def _summary_entities(members: str) -> str:
    """Return two entities that sum up a cluster; each of its members belongs to one of them."""
    titles = _MEMBER.findall(members)
    summaries = [f"{kind} of {titles[0]}" for kind in ("World", "Circle")]
    records = [f'("entity"<|>{name}<|>event<|>{members[:300]})' for name in summaries]
    records += [
        f'("relationship"<|>{title}<|>{summaries[_number(title) % 2]}<|>{title} is in it<|>7)'
        for title in titles
    ]
    return "\n##\n".join([*records, "<|COMPLETE|>"])


def _decisions(pairs: str) -> str:
    """Say of every third pair of names that both mean the same."""
    answers = [
        {"pair": int(n), "same": int(n) % 3 == 0, "confidence": 0.9, "reason": "The texts say so."}
        for n in _PAIR.findall(pairs)
    ]
    return json.dumps({"pairs": answers})


def _reply(messages: Messages) -> str:
    """Return what a model says while a question is answered; what it looks up is in the words."""
    names = _NAME.findall(messages[-1]["content"])
    lists = {
        "entities": {"entities": names, "synonyms": []},
        "named": {"named": names, "generic": []},
        "keywords": {"high_level_keywords": names[:1], "low_level_keywords": names[1:]},
    }
    step = step_of(messages)
    return json.dumps(lists[step]) if step in lists else play(messages)


def _names(text: str) -> list[str]:
    """Return capitalised names, and long words where there are few; in the order of the text.

    Their number grows with the root of the text's length, as that of recorded extractions does: 13
    of a chunk of 1,200 tokens.
    """
    number = min(max(round(_OF_A_CHUNK * math.sqrt(len(text) / 4)), _FEWEST), _MOST)
    words = set(re.findall(r"\b[a-z]+\b", text))
    names = [name for name in _NAME.findall(text) if name.lower() not in words]
    names = list(dict.fromkeys(names))[:number]
    others = dict.fromkeys(_LONG_WORD.findall(text))
    return [*names, *list(others)[: number - len(names)]] or ["Nobody"]


def _words_near(name: str, text: str) -> str:
    place = text.find(name) + len(name)
    return re.sub(r"[\s()<>|]+", " ", text[place : place + _DESCRIBED]).strip()


def _report(context: str) -> str:
    ids = _ROW_ID.findall(context.partition("-----Entities-----")[2])[:5]
    cited = f"Entities ({', '.join(ids)})" if ids else "Reports (0)"
    told = " ".join(context.split()[8:90])[:520]
    findings = [
        {"summary": f"{told[20 * n : 20 * n + 90]}.", "explanation": f"{told} [Data: {cited}]."}
        for n in range(_FINDINGS)
    ]
    names = ", ".join(_NAME.findall(context)[4:7]) or "names"
    report = {
        "title": f"The circle of {names}",
        "summary": told,
        "rating": _number(context) % 100 / 10,
        "rating_explanation": "It is named in several of the conversations.",
        "findings": findings,
    }
    return json.dumps(report)


def _number(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "replace"))
