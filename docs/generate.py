"""The reference pages, made from the code they describe: ``python -m docs.generate`` writes them.

They are kept in the repository, so that they can be read without building the site; a test says
when they are not what the code says any more, and when something in the code says nothing of
itself.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import yaml

from docs.flow_pictures import PICTURES, in_words, picture
from docs.method_entries import (
    NO_VALUE,
    Meaning,
    MethodEntry,
    common_meanings,
    entry_of,
    faults,
    value_shown,
)
from graphrag_pipeline.query.methods import method_named
from graphrag_pipeline.query.methods.registry import ALL_METHODS

if TYPE_CHECKING:
    from graphrag_evaluation.paper import Paper

PAGES = Path(__file__).parent / "reference"
_ABOUT_MACROS = "Called by name; those that give rows stand in FROM."
_ABOUT_MARTS = (
    "One asset for each model of the dbt project, built together from `published_index` and "
    "`evaluations`, the file of all experiments. Data tests are their checks; where one fails, the "
    "last marts stay. Columns: [Marts](marts.md)."
)
_ABOUT_STARTING = "The job `build_marts` builds the marts."
_ABOUT_GROUPS = {
    "hierarchies": "Each is there where `[hierarchies]` asks for it, for the methods that need it: "
    "[Methods](../methods.md).",
    "embeddings": "`facts`, `entity_titles` and `synonyms` are there where `[embeddings]` asks for "
    "them; `raptor_nodes`, `hirag_entities` and `attributed_communities` with their hierarchies.",
}
_MARTS = Path(__file__).parents[1] / "dbt_reports" / "models" / "marts" / "marts.yml"
_OVERVIEW = Path(__file__).parent / "methods.md"
NOTE = "<!-- Made by `make docs` from the code: edit that. -->\n"


@dataclass(frozen=True)
class Entry:
    """One thing the reference tells of: its full name, what it says of itself, its table row."""

    name: str
    about: str
    row: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """A heading, what it says of itself, and the things under it, in a table with these columns.

    ``text`` stands before the table, ``after`` behind it.
    """

    entry: Entry
    columns: tuple[str, ...] = ()
    entries: Sequence[Entry] = ()
    text: str = ""
    after: str = ""


def undocumented() -> list[str]:
    """Return the full name of everything on the reference pages that says nothing of itself."""
    return [
        entry.name
        for page in PARTS
        for part in _parts(page)
        for entry in (part.entry, *part.entries)
        if not entry.about.strip()
    ]


def pages() -> dict[Path, str]:
    """Return the reference pages and their pictures: their files and contents."""
    from docs.prompt_page import prompts_page

    described = {PAGES / f"{name}.md": page(name) for name in PARTS}
    return described | {PAGES / "prompts.md": NOTE + prompts_page()} | flow_pictures()


def flow_pictures() -> dict[Path, str]:
    """Return the picture of each method's flow."""
    from graphrag_pipeline.query import METHODS, MODEL_METHODS

    entries = {name: entry_of(name) for name in METHODS | MODEL_METHODS}
    return {
        PICTURES / f"{name}.svg": picture(name, entry.flow)
        for name, entry in entries.items()
        if entry
    }


def page(name: str) -> str:
    """Return one of the pages that have parts."""
    introduction, _ = PARTS[name]
    return NOTE + introduction + "".join(map(_render, _parts(name)))


@functools.cache
def _parts(page: str) -> list[Part]:
    return list(PARTS[page][1]())


def _render(part: Part) -> str:
    lines = [f"\n## {part.entry.name}\n", f"{part.entry.about}\n"]
    lines += [f"{part.text}\n"] if part.text else []
    if part.entries:
        rows = [part.columns, tuple("---" for _ in part.columns), *(e.row for e in part.entries)]
        lines.append("".join(f"| {' | '.join(map(_cell, row))} |\n" for row in rows))
    lines += [f"{part.after}\n"] if part.after else []
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(values: Iterable[object]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def command_parts() -> Iterator[Part]:
    """Yield the commands, with their arguments and options."""
    import typer

    from graphrag_pipeline.cli import app as cli

    group: Any = typer.main.get_command(cli.app)
    columns = ("argument, option", "takes", "meaning")
    entry = Entry("graphrag-pipeline", group.help or "")
    context = typer.Context(group)
    everywhere = [_option(entry.name, option, context) for option in _shown(group)]
    commands = dict(_commands(entry.name, group))
    yield Part(entry, columns, everywhere, cli.EXIT_CODES)
    yield Part(
        Entry("All commands", "Environment variables win over `graphrag.toml`."),
        ("command", "what it does"),
        [_summary(name, command.help or "") for name, command in commands.items()],
    )
    for name, command in commands.items():
        about = Entry(name, command.help or "")
        options = [_option(about.name, option, context) for option in _shown(command)]
        usage = " ".join([about.name, "[OPTIONS]", *filter(None, map(_place, command.params))])
        yield Part(about, columns, options, f"```text\n{usage}\n```")


def _summary(name: str, about: str) -> Entry:
    first = about.split("\n\n")[0]
    return Entry(name, about, (f"[`{name}`](#{name.replace(' ', '-')})", first))


def _commands(path: str, group: Any) -> Iterator[tuple[str, Any]]:
    """Yield the commands of a group, and of the groups in it, by their full names."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from _commands(f"{path} {name}", command)
        else:
            yield f"{path} {name}", command


def _shown(command: Any) -> list[Any]:
    return [option for option in command.params if option.name != "help"]


def _place(option: Any) -> str:
    if option.param_type_name != "argument":
        return ""
    return option.name.upper() if option.required else f"[{option.name.upper()}]"


def _option(command: str, option: Any, context: Any) -> Entry:
    is_argument = option.param_type_name == "argument"
    name = option.name.upper() if is_argument else option.opts[0]
    names = [name] if is_argument else option.opts
    taken = "" if getattr(option, "is_flag", False) else _taken(option, context)
    about = option.help or ""
    return Entry(f"{command} {name}", about, (_code(names), taken, about))


def _taken(option: Any, context: Any) -> str:
    """Say what kind of value is taken, or which values; and the default, if there is one."""
    kind = option.display_type(context).strip("<>").removesuffix(" range")
    kinds = _code(kind.split("|"))
    if option.required:
        return f"{kinds}, required"
    default = getattr(option.default, "value", option.default)
    return f"{kinds}, default `{default}`" if default not in (None, ()) else kinds


def setting_parts() -> Iterator[Part]:
    """Yield the sections of ``graphrag.toml``, with their settings."""
    from graphrag_pipeline.core.settings import PREFIX, PROFILES, ModelSettings, Settings
    from graphrag_pipeline.core.settings_template import model_rows, setting_rows

    schema = Settings.model_json_schema()
    sections: dict[str, list[Entry]] = {}
    for section, name, default, about in setting_rows():
        place = schema["$defs"][_definition(schema, section)] if section else schema
        full = f"{section}.{name}" if section else name
        variable = PREFIX + full.replace(".", "__").upper()
        kind = _kind(place["properties"][name])
        said = f"{about}<br>{kind}; default `{_toml(default)}`"
        if (local := PROFILES["local"].get(section, {}).get(name)) and default != "auto":
            said += f", in the profile local `{_toml(local)}`"
        row = (f"`{name}`<br>`{variable}`", said)
        sections.setdefault(section, []).append(Entry(full, about, row))
    for section, entries in sections.items():
        about = schema["$defs"][_definition(schema, section)]["description"] if section else ""
        heading = Entry(section or "Top of the file", about or "Above the first section.")
        yield Part(heading, ("setting, variable", "meaning"), entries)
        if section == "llm":
            rows = [
                Entry(f"models.NAME.{name}", about, (f"`{name}`<br>`{variable}`", about))
                for name, about in model_rows()
                for variable in [f"{PREFIX}MODELS__NAME__{name.upper()}"]
            ]
            about = inspect.getdoc(ModelSettings) or ""
            yield Part(Entry("models.NAME", about), ("setting, variable", "meaning"), rows)


def _definition(schema: Mapping[str, Any], section: str) -> str:
    given = schema["properties"][section]
    return given["$ref"].rsplit("/", 1)[-1]


def _toml(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def _kind(schema: Mapping[str, Any]) -> str:
    """Say in words what a JSON schema allows."""
    if "enum" in schema:
        return _code(schema["enum"])
    plain = {"string": "text", "array": "list of text", "object": "table", "boolean": "true, false"}
    kind = schema.get("type", "")
    if kind in plain:
        return plain[kind]
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    over = "over " if "exclusiveMinimum" in schema else ""
    words = "whole number" if kind == "integer" else "number"
    if most is not None and most < 1e4:
        return f"{words}, {over}{least:g} to {most:g}"
    return words if least is None else f"{words}, {over or 'from '}{least:g}"


_TABLES = """
SELECT name, kind, coalesce(about, '') FROM (
    SELECT table_name AS name, 'table' AS kind, comment AS about, table_oid AS place
    FROM duckdb_tables() WHERE schema_name = 'main' UNION ALL
    SELECT view_name, 'view', comment, view_oid
    FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal
) ORDER BY kind, place
"""
_COLUMNS = """
SELECT column_name, data_type, coalesce(comment, '') FROM duckdb_columns()
WHERE table_name = ? AND schema_name = 'main' ORDER BY column_index
"""
_MACROS = """
SELECT DISTINCT function_name, function_name || '(' || array_to_string(parameters, ', ') || ')',
       coalesce(split_part(comment, ' Example: ', 1), ''),
       coalesce(split_part(comment, ' Example: ', 2), '')
FROM duckdb_functions() WHERE NOT internal AND function_type IN ('macro', 'table_macro')
ORDER BY ALL
"""


def method_parts() -> Iterator[Part]:
    """Yield the methods, with their parameters: also those of your own."""
    from graphrag_pipeline.query import METHODS, MODEL_METHODS

    for name, method in (METHODS | MODEL_METHODS).items():
        about = inspect.getdoc(method.parameters) or ""
        # A dataclass without a docstring has its signature for one.
        is_written = not about.startswith(f"{method.parameters.__name__}(")
        needed = " Needs a model to answer." if method.needs_model else ""
        summary = f"{method.summary[:1].upper()}{method.summary[1:]}.{needed}"
        heading = Entry(name, summary if is_written else "")
        declared = fields(method.parameters)
        if entry := entry_of(name):
            yield _described(heading, entry, declared)
        else:
            entries = [_parameter(name, parameter) for parameter in declared]
            yield Part(heading, ("parameter", "takes"), entries, about)


def _described(heading: Entry, entry: MethodEntry, declared: Sequence[Field[Any]]) -> Part:
    """Return the part of a method that :mod:`docs.method_entries` describes."""
    # The record is kept by means of the evaluation, which not everybody has.
    from benchmarks.method_record import COLUMNS, read_record, rows_of

    name = heading.name
    prompts = dict.fromkeys(prompt for step in entry.flow for prompt in step.prompts)
    links = ", ".join(f"[`{prompt}`](prompts.md#{prompt})" for prompt in prompts)
    said = in_words(name, entry.flow).replace("[", "(").replace("]", ")")
    text = (
        f"{entry.idea}\n\nSource: {entry.source}.{_paper(entry)}\n\n"
        f"**When to use it.** {entry.when}\n\n"
        f"![{said}](../images/methods/{name}.svg)\n\nPrompts: {links}."
    )
    measured = "".join(f"| {label} | {cells} |\n" for label, cells in rows_of(name, read_record()))
    columns = f"data | {COLUMNS}"
    table = f"| {columns} |\n|{' --- |' * (columns.count('|') + 1)}\n{measured}"
    after = (
        f"**What differs, and why.** {entry.differs}{_more(name)}\n\n"
        f"**Quality and cost.** Calls of a model for an answer: {entry.calls}."
        + (f"\n\n{table.rstrip()}" if measured else " Recall and tokens: not recorded yet.")
        + (f"\n\n**In detail.** {entry.details}" if entry.details else "")
    )
    rows = [_explained(name, entry, parameter) for parameter in declared]
    return Part(heading, ("parameter", "default", "source", "meaning"), rows, text, after)


def _paper(entry: MethodEntry) -> str:
    return f"\n\n{entry.paper}" if entry.paper else ""


def _more(method: str) -> str:
    """Return a link to what else there is to say of a method, if anything."""
    is_there = f"\n### {method}\n" in _OVERVIEW.read_text("utf-8")
    return f" More: [Methods and papers](../methods.md#{method})." if is_there else ""


def _explained(method: str, entry: MethodEntry, parameter: Field[Any]) -> Entry:
    known = {**common_meanings(), **entry.parameters}
    told = known.get(parameter.name, Meaning(meaning="", source=NO_VALUE))
    meaning = f"{told.meaning}<br>{_takes(parameter)}"
    default = f"`{value_shown(parameter.default)}`"
    row = (f"`{parameter.name}`", default, told.source, meaning)
    return Entry(f"{method} {parameter.name}", told.meaning, row)


def _parameter(method: str, parameter: Field[Any]) -> Entry:
    takes = _takes(parameter)
    taken = f"{takes}; default `{_toml(parameter.default)}`"
    return Entry(f"{method} {parameter.name}", takes, (f"`{parameter.name}`", taken))


def _takes(parameter: Field[Any]) -> str:
    rule = parameter.metadata
    if "parse" in rule:
        return "a level of the hierarchy: `0` or `C0` for the root"
    if rule["type"] is bool:
        return "`true`, `false`"
    if rule["type"] is str:
        return _code(rule["among"]() if callable(rule["among"]) else rule["among"])
    if rule["type"] is float:
        return f"a number from {rule['least']} to {rule['most']}"
    return f"a whole number, at least {rule['least']}"


def table_parts() -> Iterator[Part]:
    """Yield the tables and views of the published file with their columns, and its macros."""
    from graphrag_pipeline.releases.publishing import published_sql
    from graphrag_pipeline.store.migrations import make_tables
    from graphrag_pipeline.structures.registry import all_structures

    con = duckdb.connect()
    make_tables(con)
    for structure in all_structures():
        con.execute(structure.schema)
    con.execute(published_sql())
    for name, kind, about in con.execute(_TABLES).fetchall():
        columns = [
            Entry(f"{name}.{column}", meaning, (f"`{column}`", type_, meaning))
            for column, type_, meaning in con.execute(_COLUMNS, [name]).fetchall()
        ]
        shown = f"View. {about}" if about and kind == "view" else about
        yield Part(Entry(name, shown), ("column", "type", "meaning"), columns)
    macros = [
        Entry(name, about, (f"`{call}`", about, f"`{example}`"))
        for name, call, about, example in con.execute(_MACROS).fetchall()
    ]
    con.close()
    yield Part(Entry("All macros", _ABOUT_MACROS), ("macro", "what it gives", "example"), macros)


def preset_parts() -> Iterator[Part]:
    """Yield the presets by paper, with their tables and figures and the command for each."""
    from graphrag_evaluation.paper import paper_of, preset_names

    for name in preset_names():
        paper = paper_of(name)
        shown = f"graphrag-pipeline eval tables questions-{name}"
        made = [
            (table.number, table.title, table.note, f'`{shown} -t "{table.number}"`')
            for table in paper.table
        ]
        absent = [
            (missing.number, f"Not made: {missing.why}.", "", "") for missing in paper.missing
        ]
        rows = [Entry(f"{name} {row[0]}", row[1], row) for row in (*made, *absent)]
        command = f"    graphrag-pipeline eval run --preset {name} --questions questions.jsonl"
        yield Part(
            Entry(name, f"{paper.title}."),
            ("table or figure", "what", "differs", "command"),
            rows,
            f"{_about_preset(paper)}\n\n{command}\n",
        )


def _about_preset(paper: Paper) -> str:
    """Return a preset's conditions, what it takes, and what is not as in the paper."""
    conditions = ", ".join(f"{row.name} (`{row.method}`)" for row in paper.condition)
    indexes = len({str(row.index) for row in paper.condition if row.index})
    n_answers = len(paper.condition) * max(1, len(paper.context_tokens))
    takes = [
        f"{indexes} indexes by other settings" if indexes else "",
        f"for each question {n_answers} {'retrievals' if paper.retrieval_only else 'answers'}",
        f"up to {paper.verdicts} verdicts" if paper.verdicts else "",
        "the claims of each answer" if paper.claims else "",
    ]
    apart = "Where every question names its document, each is asked of an index of it alone."
    said = [
        f"Conditions: {conditions}.",
        f"It takes {', '.join(filter(None, takes))}.",
        *([apart] if paper.per_document else []),
        *paper.differs,
    ]
    return " ".join(said)


def mart_parts() -> Iterator[Part]:
    """Yield the marts of the dbt project with their columns."""
    described = yaml.safe_load(_MARTS.read_text())
    for model in described["models"]:
        name = model["name"]
        columns = [
            Entry(f"{name}.{column['name']}", about, (f"`{column['name']}`", about))
            for column in model["columns"]
            for about in [column.get("description", "")]
        ]
        about = " ".join(model.get("description", "").split())
        yield Part(Entry(name, about), ("column", "meaning"), columns)


def asset_parts() -> Iterator[Part]:
    """Yield the groups of Dagster assets; then jobs, sensors and schedules."""
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.definitions import build_definitions

    defs = build_definitions(Settings.model_validate(_with_all_structures()))
    graph = defs.resolve_asset_graph()
    groups: dict[str, list[Entry]] = {}
    for key in reversed(graph.toposorted_asset_keys):
        groups.setdefault(graph.get(key).group_name, []).insert(0, _asset(graph, key))
    columns = ("asset", "what it is", "made from", "checks")
    for group in reversed(groups):
        about = Entry(group, _ABOUT_GROUPS.get(group, "In the order in which they are made."))
        yield Part(about, columns, groups[group])
    told = [(f"marts/{part.entry.name}", part.entry.about) for part in mart_parts()]
    marts = [Entry(name, about, (f"`{name}`", about)) for name, about in told]
    yield Part(Entry("marts", _ABOUT_MARTS), ("asset", "what it is"), marts)
    started = [
        Entry(thing.name, about, (f"`{thing.name}`", kind, about))
        for kind, thing in _what_starts_runs(defs)
        for about in [thing.description or ""]
    ]
    heading = Entry("Jobs, sensors and schedules", _ABOUT_STARTING)
    yield Part(heading, ("name", "kind", "what it does"), started)


def _with_all_structures() -> dict[str, dict[str, Any]]:
    """Return the settings that ask for every structure that is known."""
    from graphrag_pipeline.structures.registry import all_structures

    wanted: dict[str, dict[str, Any]] = {"structures": {"wanted": []}}
    for structure in all_structures():
        if structure.setting:
            section, name = structure.setting.split(".")
            wanted.setdefault(section, {})[name] = True
        else:
            wanted["structures"]["wanted"].append(structure.name)
    return wanted


def _what_starts_runs(defs: Any) -> Iterator[tuple[str, Any]]:
    from graphrag_pipeline.assets import Names
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.resources import IndexResource
    from graphrag_pipeline.sensors import build_marts_sensor

    yield from (("job", job) for job in defs.jobs)
    sensors = [*defs.sensors, build_marts_sensor(IndexResource.of(Settings()), Names(), "RUNNING")]
    yield from (("sensor", sensor) for sensor in sensors)
    yield from (("schedule", schedule) for schedule in defs.schedules)


def _asset(graph: Any, key: Any) -> Entry:
    node = graph.get(key)
    name = key.to_user_string()
    about = " ".join((node.description or "").split())
    parents = sorted(parent.to_user_string() for parent in node.parent_keys)
    checks = [graph.get_check_spec(check) for check in sorted(node.check_keys, key=str)]
    told = "<br>".join(
        f"`{spec.name}`{'' if spec.blocking else ' (warns)'}: {spec.description}" for spec in checks
    )
    silent = [spec.name for spec in checks if not spec.description]
    return Entry(name, "" if silent else about, (f"`{name}`", about, _code(parents), told))


PARTS: dict[str, tuple[str, Callable[[], Iterator[Part]]]] = {
    "cli": (
        "# Command line\n\nEvery command, as `--help` has it. Results go to standard output, "
        "everything else to standard error.\n",
        command_parts,
    ),
    "configuration": (
        "# Configuration\n\nSettings are read from `graphrag.toml`: the file that `--config` or "
        "`GRAPHRAG_CONFIG` names, the one in the current folder, or the one in the home folder. "
        "`graphrag-pipeline init` writes one with every setting. Environment variables win over "
        'the file; lists and tables are given as JSON, such as `\'["person", "geo"]\'`. The key '
        "of a model is read from `OPENAI_API_KEY`, or `GRAPHRAG_API_KEY`. A file `.env` beside "
        "`graphrag.toml` may hold these variables too; the environment wins over it. A profile "
        "decides what is left open, and nothing that is set. A wrong "
        "value is told in one line: the "
        "setting, the value, and what would be right.\n",
        setting_parts,
    ),
    "methods": (
        "# Methods\n\nEvery method: its idea, when to use it, its flow, its parameters, as "
        "`query --method NAME:parameter=value` and `compare` have them, what differs from its "
        "source, and what it finds and takes. [Methods and papers](../methods.md) compares them; "
        "a [method of your own](../how-to/extend.md#a-method-of-your-own) stands here, too, where "
        "the page is made with it.\n\nIn the pictures a brown step asks a model, a blue one does "
        "not; one with a dashed edge is not always taken. Without a model a rule takes the place "
        "of a brown step, or it is left out. In the tables of parameters *source* is the value "
        "of the paper, or of its authors' code; `-` where it has none. The tables of quality "
        "are [those of all methods](../how-to/compare.md#every-method-on-the-same-questions), "
        "without a model: recall of the gold passages among the first five in percent, with its "
        "95 % interval; the share of questions with all of them; tokens of context, and "
        "milliseconds of CPU to retrieve it; the share of questions whose extractive answer holds "
        "a gold answer, and the milliseconds that writing it takes.\n",
        method_parts,
    ),
    "tables": (
        "# Tables\n\nThe tables of the published file, `published.duckdb` in the home folder, in "
        "the order in which the pipeline fills them. The same comments are in the file: `SELECT "
        "table_name, comment FROM duckdb_tables()`.\n",
        table_parts,
    ),
    "marts": (
        "# Marts\n\nTables that dbt makes of the published index and of experiments, in a file of "
        "their own: `marts.duckdb` in the home folder. `graphrag-pipeline marts` builds them; in "
        "`graphrag-pipeline sql` they are `marts.NAME`.\n",
        mart_parts,
    ),
    "presets": (
        "# Presets by paper\n\nThe tables and figures of the papers, by number, on your own "
        "corpus: what `eval run --preset` asks and judges, and `eval tables` shows, with the "
        "paper's own figures below yours. What it would cost says `eval plan --preset`.\n",
        preset_parts,
    ),
    "assets": (
        "# Dagster assets\n\nThe assets as Dagster's UI shows them, with four levels of "
        "communities (`communities.levels`). A check that fails stops what depends on its asset, "
        "unless it only warns.\n",
        asset_parts,
    ),
}


def main() -> None:
    """Write the reference pages; say what the entries of methods lack."""
    for folder in (PAGES, PICTURES):
        folder.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
    if wrong := list(faults({name: method_named(name) for name in ALL_METHODS.own})):
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
