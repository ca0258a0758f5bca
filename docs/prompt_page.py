"""The page that shows each prompt as it is sent, with its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from docs.recording import MODEL, Sent, record
from graphrag_pipeline.core.prompting import FENCED, Message, Prompt
from graphrag_pipeline.core.tokens import count_tokens, encoding_for

INTRODUCTION = f"""# Prompts

Every prompt as it is sent to a model: what is shown here was received by a server, which a small
index of the sample corpus was built with, and asked with each method. Long data is shown without
its middle, and what stands in it as a model's earlier answer is made of the documents' words, for
the model was played. Tokens are those of `{MODEL}`. What is the same in every call comes first, so
that a server that keeps what it has read of a prompt need not read it again.

Each is a file `NAME.txt`, in `graphrag_pipeline/prompts`, in the folder of its system,
`graphrag_pipeline/systems/SYSTEM/prompts`, or in a package beside, such as that of the evaluation;
one of the same name in the folder `llm.prompts` takes its place, and `graphrag-pipeline tune`
writes such files. Values of
placeholders that come from documents, or from a model that has read them, stand between markers
with a hash of what they hold, and the system part says that they are data.

"""
_HOLDS: Mapping[str, str] = {
    "answers": "parts of the answer, the best first",
    "claim_description": "`extraction.claim_description`",
    "concepts": "names in the texts nearest to the question, a line each",
    "context": "the records that were found",
    "criterion": "what to judge by",
    "descriptions": "descriptions, a line each",
    "document": "the text of a chunk, after `chunks.prepend_metadata`",
    "domain": "the field that the model named",
    "entities": "`extraction.entity_types`",
    "entity_types": "`extraction.entity_types`",
    "error": "why the answer could not be read",
    "examples": "the examples of `extraction.domain`",
    "facts": "numbered facts",
    "first_answer": "an answer",
    "global_question": "the question that was asked",
    "language": "the language that the model named",
    "max_entities": "how many, a constant of the method",
    "max_findings": "`reports.written_findings`",
    "max_synonyms": "how many, a constant of the method",
    "meta_types": "general types, those of HiRAG's authors",
    "n_follow_ups": "`width` of the method `drift`",
    "most": "how many, a constant",
    "most_entities": "one for 100 characters of the text, at least 14",
    "most_relationships": "one for 120 characters of the text, at least 12",
    "names": "the entities that were found in the text",
    "number": "how many, as the command asks",
    "passages": "numbered passages, a line each, cut to what fits",
    "persona": "left as it is, or what `tune` wrote",
    "queries": "the question and its sub-queries, a line each",
    "question": "the question",
    "rating_description": "left as it is, or what `tune` wrote",
    "report": "a report",
    "reports": "reports",
    "response_type": "`query.response_type`, or `--response-type`",
    "second_answer": "the other answer",
    "strength": "with `extraction.strength`: how strongly two entities are related, from 1 to 10",
    "strength_field": "with `extraction.strength`: its place in a record",
    "text": "a text",
}
_MAX_WORDS: Mapping[str, str] = {
    "community_report": "`reports.max_words`",
    "summarise_descriptions": "0.6 of `graph.max_description_tokens`, at least 50",
    "summarise_descriptions_reduce": "0.6 of `graph.max_description_tokens`, at least 50",
    "thorough_answer": "`query.reduce_words`",
    "summarise_texts": "0.75 of `hierarchies.summary_tokens`",
}
_LONGEST = 1200
_SHOWN = 500


def prompts_page() -> str:
    """Return the page; the prompts on it are recorded."""
    return INTRODUCTION + "\n".join(_part(sent) for sent in sorted(record(), key=_order))


def _order(sent: Sent) -> tuple[int, str]:
    """Sort by where a prompt is sent from: index, questions, the rest; then by name."""
    place = sent.places[0]
    if place.startswith("method"):
        return 1, sent.prompt.name
    return (2 if place in ("stage evaluation", "stage tune") else 0), sent.prompt.name


def _part(sent: Sent) -> str:
    return "\n".join([f"## {sent.prompt.name}\n", *_said_of(sent), _shown(sent.messages), ""])


def _said_of(sent: Sent) -> Iterator[str]:
    shown, fixed, same = map(_tokens, (sent.messages, sent.fixed, _in_common(sent)))
    before = ", after the conversation so far" if sent.goes_on else ""
    yield f"Sent by {_places(sent.places)}{before}. {_asked(sent.body)}\n"
    yield (
        f"{shown:,} tokens as shown, {fixed:,} of them without the data; the first {same:,} "
        "are the same in every call.\n"
    )
    if names := sorted(sent.prompt.placeholders):
        yield "| placeholder | holds |\n| --- | --- |"
        yield from (f"| `{name}` | {holds(sent.prompt, name)} |" for name in names)
        yield ""


def holds(prompt: Prompt, name: str) -> str:
    """Say what is put into a placeholder of a prompt, and which setting changes it."""
    if name == "max_words":
        of_query = "reduce_words" if prompt.name.endswith("_reduce") else "map_words"
        return _MAX_WORDS.get(prompt.name, f"`query.{of_query}`")
    return _HOLDS[name]


def _places(places: Sequence[str]) -> str:
    kinds: dict[str, list[str]] = {}
    for place in places:
        kind, _, name = place.partition(" ")
        kinds.setdefault(kind, []).append(f"`{name}`")
    return "; ".join(
        f"the {kind}{'s' if len(names) > 1 else ''} {', '.join(names)}"
        for kind, names in kinds.items()
    )


def _asked(body: Mapping[str, object]) -> str:
    """Say what a request asks for besides its text."""
    if "response_format" in body:
        return "The answer is asked for by a JSON schema, too, where the server takes one."
    if "logit_bias" in body:
        return "YES and NO are forced, in one token, where the model's encoding is known."
    return "The answer is text."


def _in_common(sent: Sent) -> str:
    """Return what stands before the first place that the data decides."""
    text, fixed = ("\n".join(m["content"] for m in talk) for talk in (sent.messages, sent.fixed))
    pairs = enumerate(zip(text, fixed, strict=False))
    return text[: next((place for place, (a, b) in pairs if a != b), len(fixed))]


def _tokens(said: str | Sequence[Message]) -> int:
    texts = [said] if isinstance(said, str) else [message["content"] for message in said]
    return sum(count_tokens(texts, encoding_for(MODEL)))


def _shown(messages: Sequence[Message]) -> str:
    """Return messages as a block of code, fenced by more back quotes than any of them has."""
    text = "\n\n".join(f"[{m['role']}]\n{_shortened(m['content'])}" for m in messages)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(4, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


_DATA = re.compile(rf"(?<=<)({'|'.join(sorted(FENCED))}) id=(\w+)>\n(.*?)\n</\1 id=\2>", re.DOTALL)


def _shortened(text: str) -> str:
    return _DATA.sub(_without_middle, text)


def _without_middle(match: re.Match[str]) -> str:
    data = match[3]
    if len(data) <= _LONGEST:
        return match[0]
    shown = f"{data[:_SHOWN]}\n[... {len(data) - 2 * _SHOWN:,} characters ...]\n{data[-_SHOWN:]}"
    return match[0].replace(data, shown)
