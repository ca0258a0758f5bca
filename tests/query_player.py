"""A model for questions, played: it refers to what it is shown, and to one thing it is not."""

from __future__ import annotations

import csv
import io
import json
import re

CITED = re.compile(r"\[Data: (\w+) \(([\d, ]+)\)\]")
NUMBERED = re.compile(r"^(\d+)\. (.*)", re.MULTILINE)
LONG_WORD = re.compile(r"\w{5,}")
OTHER_SECTIONS = ("Entities", "Relationships", "Claims", "Reports")
STEPS = {
    "global_map": "reports on parts of a collection",
    "archrag_map": "records that were found for a question",
    "summary_map": "passages of a collection of texts, and a question about",
    "lazy_map": "parts of a collection of texts that were found to bear on a question",
    "break up": "Write down what to look for",
    "test": "whose sentences are numbered",
    "reduce": "Write the answer.",
    "rate": "Rate how useful the report is",
    "hyde": "Write the report that would answer the question",
    "primer": "the reports that seem closest to it",
    "follow up": "You work on one part of a larger question",
    "drift_reduce": "Write the final answer.",
    "entities": "Name the entities to look up in it",
    "named": "in two lists",
    "reason": "You find the answer to a question step by step",
    "keywords": "high-level keywords: the wider",
    "classify": "classify questions into one of two categories",
    "filter facts": "You are given a question and numbered facts",
    "cot": "step by step; there are no sources",
    "zero_shot": "there are no sources to look at",
    "basic": "from passages of texts",
    "plan": "Decompose it into steps",
    "judge": "these were solved one after the other",
    "next": "Suggest what the same person",
    "solve": "A question is answered step by step",
    "local": "from tables of a knowledge graph",
}


def step_of(messages: list[dict]) -> str:
    system = messages[0]["content"]
    return next(name for name, words in STEPS.items() if words in system)


def shown_numbers(messages: list[dict], section: str) -> list[int]:
    """The first column of a table that the model is shown."""
    tables = (m["content"] for m in messages[::-1] if f"-----{section}-----\n" in m["content"])
    if (content := next(tables, None)) is None:
        return []
    part = content.split(f"-----{section}-----\n")[1].split("\n-----")[0].split("\n</")[0]
    return [int(row[0]) for row in list(csv.reader(io.StringIO(part)))[1:] if row]


def numbered_with_words_of_question(messages: list[dict]) -> list[int]:
    """The numbers of the sentences that share a long word with the question, as a model might."""
    content = messages[-1]["content"]
    asked = content.partition("Question: ")[2].partition("\n")[0]
    words = set(LONG_WORD.findall(asked.casefold()))
    return [
        int(number)
        for number, sentence in NUMBERED.findall(content)
        if words.intersection(LONG_WORD.findall(sentence.casefold()))
    ]


def play(messages: list[dict]) -> str:
    """A model that cites what it is shown, and one thing that it is not (9999)."""
    step = step_of(messages)
    if step == "break up":
        return json.dumps({"queries": ["Who was Bob Cratchit?", "Whom did Scrooge employ?"]})
    if step == "test":
        return json.dumps({"sentences": numbered_with_words_of_question(messages)})
    if step in ("global_map", "summary_map", "archrag_map", "lazy_map"):
        section = "Sources" if step in ("summary_map", "lazy_map") else "Reports"
        if step == "archrag_map" and "-----Reports-----" not in messages[-1]["content"]:
            section = "Entities"
        points = [
            {"description": f"Point {n} [Data: {section} ({n}, 9999)].", "score": 10 * (n % 7)}
            for n in shown_numbers(messages, section)
        ]
        return json.dumps({"points": points})
    if step in ("reduce", "drift_reduce"):
        found = dict.fromkeys(CITED.findall(messages[-1]["content"]))
        return "In short: " + " ".join(
            f"so [Data: {kind} ({n}, 9999)]." for kind, n in dict.fromkeys(found)
        )
    if step == "rate":
        return json.dumps({"reason": "so", "rating": 5})
    if step in ("primer", "follow up"):
        section = "Reports" if step == "primer" else "Sources"
        numbers = shown_numbers(messages, section)[:1]
        cited = "".join(f" [Data: {section} ({number})]" for number in numbers)
        return json.dumps(
            {
                "intermediate_answer": f"By {step}{cited}.",
                "score": 50,
                "follow_up_queries": [f"{step} about Scrooge {n}?" for n in range(9)],
            }
        )
    if step == "hyde":
        return "A report on the clerk of Scrooge, Bob Cratchit."
    if step == "entities":
        return json.dumps({"entities": ["bob cratchit"], "synonyms": ["SCROOGE", "Nobody"]})
    if step == "plan":
        return json.dumps(
            {
                "steps": [
                    {"kind": "retrieval", "task": "Who was the clerk?", "subject": "Scrooge"},
                    {"kind": "retrieval", "task": "Who was the son of #1?", "subject": "#1"},
                ]
            }
        )
    if step == "judge":
        return json.dumps({"enough": True, "question": ""})
    if step == "next":
        return json.dumps({"questions": ["Who was the clerk of Scrooge", "Who was Tiny Tim?"]})
    if step == "solve":
        step = messages[-1]["content"].partition("The step:")[2]
        return "Tiny Tim" if "son of" in step else "Bob Cratchit"
    if step == "named":
        return json.dumps({"named": ["Bob Cratchit"], "generic": ["clerk"]})
    if step == "reason":
        return "So the answer is: Bob Cratchit."
    if step == "keywords":
        return json.dumps({"high_level_keywords": ["prize"], "low_level_keywords": ["Scrooge"]})
    if step == "filter facts":
        return json.dumps({"facts": [1]})
    if step == "classify":
        return json.dumps({"category": "fact-based"})
    number = next(iter(shown_numbers(messages, "Sources")), 7777)
    told = (
        f"Bob Cratchit was his clerk [Data: Sources ({number}, 9999)] (a man [sic] of few words). "
        "He had a son [Data: Sources (8888)]. "
    )
    if step != "local":
        return f"{told}And so on."
    first = {name: shown_numbers(messages, name)[:1] for name in OTHER_SECTIONS}
    named = "; ".join(f"{name} ({numbers[0]})" for name, numbers in first.items() if numbers)
    return f"{told}See [Data: {named}]."
