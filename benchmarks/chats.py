"""Chat logs made by seed: some people who tell each other things, and questions on what they said.

Files are named by their time and hold a dozen messages each, most of them small talk. What is told
is one of a few kinds of fact about somebody whom a speaker knows; questions ask for one fact, or
for one about a person whom another file introduces. No text is about what its name says.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

SPEAKERS = ("Maren", "Tomas", "Ilka", "Jonas", "Priya", "Wenzel")
_RELATIONS = ("sister", "cousin", "neighbour", "landlord", "old teacher", "flatmate", "boss")
_FIRST = ("Al", "Bri", "Cor", "Dal", "Ed", "Fen", "Gis", "Hal", "Ir", "Jor", "Kel", "Lu")
_LAST = ("vin", "ena", "dric", "mund", "wyn", "ella", "bert", "ora", "rik", "nessa")
_PLACES = ("Bergen", "Lisbon", "Graz", "Tartu", "Leiden", "Zadar", "Cork", "Turku", "Ghent", "Pisa")
_FIRMS = ("the harbour office", "a bakery", "the tram depot", "a seed library", "the observatory")
_THINGS = ("cello", "kayak", "loom", "beehive", "typewriter", "telescope", "printing press")
_ANIMALS = ("parrot", "greyhound", "tortoise", "goat", "ferret", "hedgehog")
_SMALL_TALK = (
    "ok see you later",
    "haha yes, that is so true",
    "did anybody see the match last night?",
    "I will be ten minutes late, sorry",
    "the bus is late again",
    "who brings the cake on Friday?",
    "it is raining all day here",
    "can you send me the photos?",
    "my phone was dead, what did I miss?",
    "no idea, ask again tomorrow",
    "I have so much work this week",
    "good morning everybody",
    "shall we cook something on Sunday?",
    "the heating is broken once more",
    "thanks, that was really kind of you",
)
_FACTS = (
    ("{name} has moved to {place}", "Where does {who} live now?"),
    ("{name} works for {firm} these days", "Who employs {who}?"),
    ("{name} bought a second-hand {thing}", "What has {who} bought?"),
    ("{name} keeps a {animal} in the kitchen", "Which animal does {who} keep?"),
)
_BEGIN = datetime(2023, 1, 9, 7, 12)
_MESSAGES = 12
_ONE_HOP = 0.5


@dataclass(frozen=True)
class Chats:
    """Texts by file name, and (question, names of the files that answer it)."""

    files: dict[str, str]
    questions: Sequence[tuple[str, frozenset[str]]]


def chats(seed: int = 16, n_people: int = 100) -> Chats:
    """Return chats in which so many people are spoken of, each introduced in a file of its own."""
    chance = random.Random(seed)
    names = [f"{first}{last}" for first in _FIRST for last in _LAST]
    chance.shuffle(names)
    logs: list[list[tuple[str, str]]] = []
    questions: list[tuple[str, tuple[int, ...]]] = []
    relations = [(s, r) for s in SPEAKERS for r in _RELATIONS]
    chance.shuffle(relations)
    for place, name in enumerate(names[:n_people]):
        speaker, relation = relations[place % len(relations)]
        is_known_by = place < len(relations)
        introduced = (
            f"my {relation} {name} says hello" if is_known_by else f"I met {name} on a train"
        )
        logs.append([(speaker, introduced)])
        said, question = _FACTS[place % len(_FACTS)]
        filled = said.format(
            name=name,
            place=chance.choice(_PLACES),
            firm=chance.choice(_FIRMS),
            thing=chance.choice(_THINGS),
            animal=chance.choice(_ANIMALS),
        )
        logs.append([(chance.choice(SPEAKERS), filled)])
        is_direct = not is_known_by or chance.random() < _ONE_HOP
        who = name if is_direct else f"{speaker}'s {relation}"
        gold = (len(logs) - 1,) if is_direct else (len(logs) - 2, len(logs) - 1)
        questions.append((question.format(who=who), gold))
    order = list(range(len(logs)))
    chance.shuffle(order)
    name_of = {log: _name(chance, place) for place, log in enumerate(order)}
    files = {name_of[log]: _written(chance, logs[log]) for log in order}
    return Chats(files, [(q, frozenset(name_of[log] for log in gold)) for q, gold in questions])


def _name(chance: random.Random, place: int) -> str:
    at = _BEGIN + timedelta(days=place, minutes=chance.randrange(600))
    return f"{at:%Y-%m-%d %H-%M}.txt"


def _written(chance: random.Random, told: Sequence[tuple[str, str]]) -> str:
    lines = [(chance.choice(SPEAKERS), chance.choice(_SMALL_TALK)) for _ in range(_MESSAGES)]
    for message in told:
        lines.insert(chance.randrange(len(lines)), message)
    return "".join(f"{speaker}: {text}\n" for speaker, text in lines)
