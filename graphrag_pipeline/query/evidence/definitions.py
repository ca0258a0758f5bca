"""Sentences that say who or what something is, by rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import asked_language, fold, terms
from graphrag_pipeline.query.evidence.announcements import CAPTION, is_reference
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.evidence.units import Unit

_DEFINES = pattern_of(words_pattern("defines"))
# What a manual says of a name and its kind: the qshape(1) program helps ...
_DOES = pattern_of(words_pattern("does_what"))
_MEAN = words_pattern("means")
_MEANS = pattern_of(rf"(?<!the )(?:{_MEAN})")
# What a contract says between a term and what it means: the "Source" for a work in any form means.
_BETWEEN = 90
_LEADS = pattern_of(rf"\s(?:{words_pattern('leads_to_name')})\s")
_SUPPOSES = pattern_of(words_pattern("supposes"))
# What a sentence may say beside the subject before it says what that is.
_BEGINNING = 60
_SAYS_OF_ONESELF = r"\b(?:i['’]m|i am|my name is)\b"
# "Ada King (1815-52)" and "Ada King, born in London," are Ada King.
_INSERTED = pattern_of(r"\([^)]*\)|,.*,\s*$")
# "For a harbour, a quay is": the subject may stand behind a clause, or in quotes.
_CLAUSE, _CLOSING = pattern_of(r'[,、„«「『]|[“"](?=\S)'), '»”“」』" '
_ARTICLE = pattern_of(rf"(?:{words_pattern('articles')})\s+")
_LEADS_IN = pattern_of(rf"(?:(?:{words_pattern('leads_in')})\s+)+")
# likely(X) and qshape(1) are what they are called without that.
_TAKES = pattern_of(r"(?<=\w)\([^()]*\)(?=\]|\s|$)")
_ANY = pattern_of(rf"(?:{words_pattern('one')})\s+")
# The urgency field and the command status are what stands below *Urgency* and *status*.
_KIND = words_pattern("kinds_of_names")
_OF_A_KIND = pattern_of(rf"^(?:{_KIND})\s+(?=\S)|(?<=\S)\s+(?:{_KIND})$")
# A term in quotes that a sentence begins with: "Contributor" means each ...
_TERM = pattern_of(rf"\W*(?:{_ARTICLE.pattern})?[\"“„«']+([^\"”“»]{{1,80}})[\"”“»'’]+")
# How a manual begins, and an entry of a glossary: git-log - Show commit logs; docstring: A string
_ENTRY = pattern_of(r"(?!-)([^\n.,;:]{1,60}?)(?:\s+(?:—|–|--?)|(:))\s+(?=\w)")
# How dictionaries say one: heisenbug /hi:'zen-buhg/, n.
_SPOKEN = pattern_of(rf"\s/[^/\n]+/|[\s(](?:{words_pattern('parts_of_speech')})\.")
_ONE, _NAMED, _THAT_IS = map(words_pattern, ("one", "introduces", "that_is"))
_ONE_IN = {code: words_pattern(f"one_{code}") for code in ("pt", "sv", "da", "no")}
_IS = words_pattern("is")
_IS_NEXT = pattern_of(rf"\s+(?:{_IS})")
_LEADING = pattern_of(words_pattern("leads_to_name"))
# What is not normally called so is not that, and a named table is no name.
_NOT_CALLED = pattern_of(
    rf"(?:(?:{words_pattern('negates')})(?:\s+\w+)?|(?:{words_pattern('articles')}))\s+\Z"
)
_WORD_BEFORE = pattern_of(r"(\S+)\s[\"'“«„]?\Z")
_QUOTES = "\"'“”«»„‘’"
_APART = pattern_of(r"[\s-]+")
_NUMBERING = pattern_of(r"^(?:#+\s+)?(?:(?:\d+\.)*\d*\s+)?")
_NAME_GOES_ON = pattern_of(r"\s[A-Z]")
_LEAST_INITIALS = 2
_MOST_ADDED, _NAMED_LONGER, _ASKED_LONGER = 2, 0.6, 0.9
_DOES_SO = 0.8
_WORD, _ENDS = pattern_of(r"\w+"), pattern_of(r"[^\W_][)\]\"”]?[.!?](?=\s|$)")
_PLAIN = pattern_of(r"[(\"“'‘]*[^\W_][\w'’:/-]*[)\"”'’]*[.,;:!?]*")
# y = linspace (start, end); void push_back( const T& value ); not linspace (0, 1), x (text).
_SIGNATURE = (
    r"(?!{name} \([^,()]*\)$)[\w\s,*&<>\[\]=:~]{{0,60}}(?<![\w.])({name})\s?"
    r"\((?![^()]*(?<!\w)\d)[^()\n]{{0,120}}\)\s*[;:]?"
)
_LEAST_WORDS, _PROSE, _MOST_BETWEEN = 4, 0.75, 12
_INTRODUCED, _BY_LETTERS = 2.0, 0.5
ASKED_SO = 3.0
"""How much a heading counts that asks what something is as the question does."""


def says_what_is(
    subject: str, *, is_person: bool, asks_does: bool = False
) -> Callable[[Sentence], float]:
    """Return what says how much a sentence counts that says what a subject is; 0 if none does.

    It begins with the subject, or some of its words and no others, and goes on with "is a" or the
    like; or it announces what follows and says no other words itself, as a heading or a term does;
    or it is an entry of a manual or a dictionary, or begins with the subject in quotes and what
    that means; or it introduces the subject (see :func:`_introduces`), or says last who or what is
    it, or what it does, above all where that is asked. Of a person, also an apposition ("King, the
    first ...") and what is said of oneself.
    """
    says_so = _INTRODUCED if asks_does else _DOES_SO
    words, named, article = terms(subject), terms(_name_of(subject)), _ARTICLE.match
    ends = (words, terms(_LEADS.split(subject)[0])) if named == words else ()
    heads = words if is_person else [said[-1] for said in ends if said]
    introduced = _introduces(_ARTICLE.sub("", subject, count=1))
    inverted, apposition = _patterns_of(subject)

    def stands(said: list[str]) -> float:
        return float(said == named) or _stands_for(said, words, heads)

    def says(sentence: Sentence) -> float:
        if _is_head(sentence) and (told := _told_by_head(sentence.first, subject, stands)):
            return told
        text = fold(sentence.quote)
        entry = None if is_person else _ENTRY.match(text)
        if entry and terms(entry[1]) in (words, named):
            return 1.0 if entry[2] else _INTRODUCED
        if words and inverted.search(text):
            return _INTRODUCED
        begin = text[: len(subject) + _BEGINNING]
        defines = _DEFINES.search(begin)
        said = _INSERTED.sub("", begin[: defines.start()]) if defines else ""
        if lead := _LEADS_IN.match(said):
            said = said[lead.end() :]
        before, clause = terms(said), terms(_CLAUSE.split(said.rstrip(_CLOSING))[-1])
        # Under systemd is where something else is; for a harbour, a quay is what a quay is.
        is_placed = clause != words and not article(said) and bool(_LEADING.match(said))
        before = clause if clause == words else before
        means = _MEANS.search(text[: len(subject) + _BETWEEN])
        term = _TERM.match(text)
        if term and (means or _IS_NEXT.match(text, term.end())) and stands(terms(term[1])) == 1.0:
            return _INTRODUCED
        is_meant = means is not None and terms(text[: means.start()])[: len(words)] == words
        if is_meant or (is_person and apposition.search(text)):
            return float(bool(words))
        sure = 0.0 if is_placed or _SUPPOSES.match(text) else stands(before)
        # The Debian Project is another thing than Debian.
        sure *= 0.5 if sure == _NAMED_LONGER and article(said) and not article(subject) else 1.0
        # What a longer name contains says less of the subject than what it is.
        is_said = sure == 1.0 or (defines is not None and " " in defines[0])
        does = 0.0 if is_person else says_so * _says_does(begin, _name_of(subject))
        return max(sure * is_said, does, introduced(text, sentence.quote))

    return _once_each(says)


def _once_each(says: Callable[[Sentence], float]) -> Callable[[Sentence], float]:
    """Return a function that reads each sentence of a question once."""
    known: dict[tuple[int, int, str], float] = {}

    def holds(sentence: Sentence) -> float:
        key = (id(sentence.window), sentence.start, sentence.quote)
        if key not in known:
            known[key] = says(sentence)
        return known[key]

    return holds


def _patterns_of(subject: str) -> tuple[re.Pattern[str], ...]:
    """Return what says a subject last, and what stands beside it."""
    bare = re.escape(_ARTICLE.sub("", subject, count=1))
    # The pilot of the harbour was Ann Lee, ...; a boat is seaworthy if ...
    inverted = (
        rf"(?:^|[.;:]\s+)(?:{_ARTICLE.pattern})[^.,;:]{{3,{_BETWEEN}}}(?<!which)(?<!that)\s(?:{_IS})\s+"
        rf"(?:(?:{_NAMED})\s+)?(?:{_ARTICLE.pattern})?{bare}"
        rf"(?=[,.;]|$|\s+(?:{_SUPPOSES.pattern}))"
    )
    apposition = (
        rf"{_SAYS_OF_ONESELF}[^.]{{0,40}}{re.escape(subject)}, |{re.escape(subject)}, "
        r"(?:who|an?|the|chief|senior|professor|director|founder|president|ceo|cto)\b"
    )
    return tuple(map(re.compile, (inverted, apposition)))


def tell_below(subject: str, units: Sequence[Unit]) -> set[int]:
    """Tell the first sentences below lines that are a subject with these, beyond what is no prose.

    A page on a function has its forms, and one on a ship a table, before it says what that is.
    Returns the places of these units.
    """
    name = _ARTICLE.sub("", _name_of(subject), count=1)
    firsts: dict[int, dict[int, str]] = {}
    told: set[int] = set()
    for place, unit in enumerate(units if name else ()):
        window = unit.sentence.window
        if id(window) not in firsts:
            lines = unit.row["text"].splitlines(keepends=True)
            firsts[id(window)] = dict(_firsts_below(lines, name))
        head = firsts[id(window)].get(unit.sentence.start - unit.row["window_start"])
        if head and _is_prose(unit.sentence.first):
            unit.told, unit.shown = f"{subject} {unit.told}", f"{head}: {unit.shown}"
            told.add(place)
    return told


def _firsts_below(lines: Sequence[str], name: str) -> Iterator[tuple[int, str]]:
    """Yield where the first prose below a line that is a name begins, and that line.

    Also below the signature of a function of that name, but for one in code.
    """
    signature = re.compile(_SIGNATURE.format(name=re.escape(name)))
    start, head, between, is_code = 0, "", 0, False
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        said, is_code = line.strip().strip("#*_ "), is_code ^ line.startswith("```")
        if head and _is_prose(said):
            if between:
                yield start + len(line) - len(line.lstrip()), head
            head = ""
        elif not is_code and name in (folded := fold(said)) and (m := signature.fullmatch(folded)):
            head, between = said[slice(*m.span(1))], 1
        elif not following.strip() and _is_bare(line.strip()) and _names(fold(said), name):
            head, between = said, 0
        elif line.startswith("#") or between > _MOST_BETWEEN:
            head = ""
        else:
            between += bool(said)
        start += len(line)


def _is_prose(line: str) -> bool:
    """Whether a line has a sentence: also one that says only what is done, as manuals do."""
    words = line.split()
    n_plain = sum(_PLAIN.fullmatch(word) is not None for word in words)
    is_plain = len(words) >= _LEAST_WORDS and n_plain >= _PROSE * len(words)
    return is_plain and _ENDS.search(line) is not None and not is_reference(line)


def _names(line: str, name: str) -> bool:
    """Whether a line is a name, but for its kind, its number, and what it takes in brackets."""
    if name not in line:
        return False
    bare = _TAKES.sub("", _NUMBERING.sub("", line))
    return name in (bare, _ARTICLE.sub("", _name_of(bare), count=1))


def _is_bare(line: str) -> bool:
    """Whether a line ends as headings do, not as speech, and is no comment of code."""
    return (line[-1:].isalnum() or line.endswith((")", "?"))) and not line.startswith("# ")


def _says_does(text: str, name: str) -> bool:
    """Whether a text begins with a name, its kind at most, one word before it, and what it does."""
    does = _DOES.search(text)
    said = _INSERTED.sub("", text[: does.start()]).strip("`*[]_ ") if does else ""
    said = _ARTICLE.sub("", said, count=1)
    bare = _OF_A_KIND.sub("", said)
    words, asked = terms(bare), terms(name)
    is_name = words == asked and len(_WORD.findall(bare)) == len(_WORD.findall(name))
    is_before_kind = bare != said and said.startswith(bare)
    return bool(asked) and (is_name or (is_before_kind and words[1:] == asked))


def _is_head(sentence: Sentence) -> bool:
    """Whether a sentence announces what follows, and is not the last of lines below each other."""
    below = sentence.announced.strip() if sentence.announces else ""
    if not below or is_reference(below) or (CAPTION.match(below) and "\n" not in below):
        return False
    if sentence.is_marked or sentence.first.startswith("#"):
        return True
    line = sentence.window.line_start(sentence.start)
    return sentence.window.text(max(line - 2, 0), line).strip() == ""


def _head_of(heading: str) -> str:
    """Return a heading folded, without its number and how what it names is spoken or used."""
    return fold(_TAKES.sub("", _SPOKEN.sub("", _NUMBERING.sub("", heading)))).strip()


def _told_by_head(first: str, subject: str, stands: Callable[[list[str]], float]) -> float:
    """Return how much a heading counts: most if it asks what the subject is, or a longer name."""
    head = _head_of(first)
    asks_of = AnalysedQuestion(head).subject
    named_so = stands(terms(asks_of or head))
    if named_so == 1.0:
        return ASKED_SO if asks_of else _says_it_so(head, subject)
    # What is Debian GNU/Linux? stands above what Debian is, and what is a Debian file does not.
    bare = re.escape(_ARTICLE.sub("", subject, count=1))
    asks_longer = named_so and re.search(rf"(?i:\b{bare})[\s-](?:[A-Z]|\W)[^?]*\?\s*$", first)
    return _ASKED_LONGER if asks_longer else 0.0


def _says_it_so(heading: str, subject: str) -> float:
    """Return how much a heading counts that has the terms of a name.

    *There is a floating selection* is less than that, and so is *Does Debian do Linux only?*
    """
    bare = _ARTICLE.sub("", subject, count=1)
    words, asked = (_WORD.findall(_name_of(text)) for text in (heading, bare))
    if heading.endswith("?"):
        of_name = [place for place, word in enumerate(words) if word in asked] or [0]
        words = words[of_name[0] : of_name[-1] + 1]
    return 1.0 if len(words) <= len(asked) or heading.startswith("-") else _DOES_SO


def _name_of(subject: str) -> str:
    """Return what stands for a subject in a heading: "the clone tool" is Clone, "a tool" a tool."""
    return subject if _ANY.match(subject) else _OF_A_KIND.sub("", _ARTICLE.sub("", subject))


def _stands_for(said: list[str], subject: list[str], heads: Collection[str]) -> float:
    """Return how surely words before "is a" name a subject: it, some or two more of its words.

    Some end in one of the ``heads``, and are more than a letter: C is no C-HNSW index, and no
    "C-HNSW" alone. Debian GNU/Linux may be what Debian is.
    """
    if said and set(subject).issuperset(said):
        is_part = said[-1] in heads and any(len(word) > 1 for word in said)
        return float(is_part or said == subject)
    is_longer = said[: len(subject)] == subject and len(said) <= len(subject) + _MOST_ADDED
    return _NAMED_LONGER * is_longer


def definition_pattern(subject: str) -> str:
    """Return a pattern (of RE2) of texts that may say what a subject, case folded, is."""
    names = dict.fromkeys((_ARTICLE.sub("", subject, count=1), _name_of(subject)))
    between = rf"[{_QUOTES}]?\s+[{_QUOTES}]?"
    name = "|".join(between.join(map(re.escape, n.strip(_QUOTES).split())) for n in names)
    name = rf"[{_QUOTES}]?(?:{name})(?:e?s)?"
    inserted = r"(?:\s*\([^()]{1,80}\)|,[^.,]{1,80},|(?:\s+[\w/+-]+){1,2})?"
    does = (
        rf"(?:^|\n|[.!?]\s)\s*(?:{_ARTICLE.pattern})?(?:[\w-]+\s+)?[\[`*]*{name}[`*]*(?:\(\w*\))?"
        rf"(?:\]\([^()\s]*\))?(?:\s+[\w-]+)?\s+(?:{_DOES.pattern})"
    )
    begins = rf"(?:^|\n|[.!?:;\"”»)\]])\s*(?:{_ARTICLE.pattern})?{name}[{_QUOTES}]?"
    return (
        rf"(?i){does}|{begins}{inserted}\s+(?:{_DEFINES.pattern})|{begins}\s*(?::|–|—|--)\s|"
        rf"(?:^|\n)\W*(?:[\d.]+\s+)?{name}\W*(?:\s/[^/\n]+/[^\n]{{0,20}})?(?:\n|$)|"
        rf"\b(?:{_IS})\s+(?:{_ARTICLE.pattern})?{name}\s*(?:[,.;]|\b(?:{_SUPPOSES.pattern}))|{begins}[^.;:]{{0,{_BETWEEN}}}\b(?:{_MEAN})|"
        rf"(?:{_NAMED})\s+(?:[^.,;()]{{1,80}}\()?{name}\b|"
        rf"\b{name}(?:\s+\([^()]{{1,80}}\))?,\s+(?:{_ONE})\s"
    )


def _introduces(name: str) -> Callable[[str, str], float]:
    """Return what says how much a text, given folded and as written, counts that brings a name in.

    It says that something is called so, goes on with what it is ("ArchRAG, a novel approach"; not
    "in Berlin, a man"), or, which is half as sure, has what the name is short for beside it
    ("Small World (SW)"). Such sentences are about something else as well, and so share less with
    the question: they count more than one that begins with the name.
    """
    bare = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    called = re.compile(
        rf"(?:{_NAMED}) (?:[^.,;()]{{1,80}} \()?[\"'“«„]?{bare}|"
        rf"{bare},? \(?(?:{_THAT_IS})"
    )
    one = f"{_ONE}|{_ONE_IN.get(asked_language() or '', _ONE)}"
    apposition = re.compile(rf"{bare}[\"'”»“]?(?: \([^()]{{1,80}}\))?, (?:{one})\s")
    several = rf"(?<![\w-]){re.escape(name)}s?(?![\w-])"
    short = re.compile(rf"([^.;:()]{{3,80}}) \({several}|{bare} \(([^()]{{3,80}})\)")

    def introduces(text: str, written: str) -> float:
        if name not in text:
            return 0.0
        called_so = any(
            not (_NAME_GOES_ON.match(written, m.end()) or _NOT_CALLED.search(text, 0, m.start()))
            for m in called.finditer(text)
        )
        befores = (_WORD_BEFORE.search(text, 0, m.start()) for m in apposition.finditer(text))
        if called_so or any(not (b and _LEADING.fullmatch(b[1])) for b in befores):
            return _INTRODUCED
        if f"({name}" not in text and f"{name} (" not in text:
            return 0.0
        return _BY_LETTERS * any(_spell(name, m[1] or m[2]) for m in short.finditer(text))

    return introduces


def _spell(name: str, words: str) -> bool:
    """Whether words in a row begin with the letters of a name, at least half of them."""
    letters = [sign for sign in name if sign.isalpha()]
    if len(letters) < _LEAST_INITIALS:
        return False
    initials = [word[0] for word in _APART.split(words) if word]
    for first, initial in enumerate(initials):
        n = 0
        for sign in initials[first:] if initial == letters[0] else ():
            n += n < len(letters) and sign == letters[n]
        if n >= _LEAST_INITIALS and 2 * n >= len(letters):
            return True
    return False
