"""`ask`: a session of questions over one open engine."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import answer_views, console
from graphrag_pipeline.cli.command import OfRelease, settings_here
from graphrag_pipeline.cli.lines import Lines
from graphrag_pipeline.core.errors import GraphRAGError, InputError

if TYPE_CHECKING:
    from graphrag_pipeline.query import Answer, QueryEngine
    from graphrag_pipeline.query.control import Control
    from graphrag_pipeline.query.open_engine import Holder

_COMMANDS = {
    ":method": "NAME switches the method, as in :method lightrag:mode=local; alone, lists them",
    ":sources": "[NUMBER ...] prints the passages that the last answer cites",
    ":reset": "forgets the conversation",
    ":help": "says this",
    ":quit": "ends the session, as Ctrl-D does",
}
_QUIT = (":quit", ":exit", ":q", "quit", "exit")
_ALONE = "No model writes the answers, so each question stands alone."
_STOPPED = "stopped"


def ask(
    question: Annotated[
        str | None, typer.Argument(help="Answer this one, and end; query has more options.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", "-m", help="A method, as query takes it; :method changes it."),
    ] = None,
    release: OfRelease = None,
) -> None:
    """Ask one question after another; a later one may follow up an earlier one.

    The index stays open, so that each takes milliseconds where no model is asked. From a pipe every
    line is a question. :help lists the commands of the session.
    """
    from graphrag_pipeline.query.open_engine import Holder

    settings = settings_here()
    held = Holder("default", settings, release=release, with_paths=True)
    with contextlib.closing(held) as holder:
        session = _Session(holder, method)
        if question is not None:
            return session.take(question.strip())
        failure = session.run()
    if failure is not None:
        raise typer.Exit(failure.exit_code)


class _Session:
    """The method, the conversation so far and the last answer."""

    def __init__(self, holder: Holder, method: str | None) -> None:
        from graphrag_pipeline.query.ask import default_method

        self._holder = holder
        self._writes = holder.settings.query.answers == "llm"
        self._turns: list[tuple[str, str]] = []
        self._answer: Answer | None = None
        self._choose(method or default_method(holder.settings))
        with holder.lease() as engine:
            self._release = engine.index.facts.id

    def run(self) -> GraphRAGError | None:
        """Answer until the end of input; return the last failure of a pipe, if there was one."""
        from graphrag_pipeline.query.methods import METHODS, MODEL_METHODS

        lines = Lines(lambda: (*_COMMANDS, *METHODS, *MODEL_METHODS))
        if lines.are_typed:
            console.note(f"Release {self._release}. :help lists the commands, Ctrl-D ends.")
            if not self._writes:
                console.note(_ALONE)
        failure = None
        while True:
            try:
                line = lines.read(f"{self._spec}> ")
            except KeyboardInterrupt:
                console.note("")
                continue
            if line is None or line.strip() in _QUIT:
                return None if lines.are_typed else failure
            try:
                self.take(line.strip())
            except KeyboardInterrupt:
                if not lines.are_typed:
                    raise
                console.note(_STOPPED)
            except GraphRAGError as error:
                console.note_error(str(error))
                failure = error

    def take(self, line: str) -> None:
        """Answer a question, or do what a command says."""
        if not line.startswith(":"):
            if line:
                self._ask(line)
            return
        command, _, rest = line.partition(" ")
        match command:
            case ":method":
                self._choose(rest.strip()) if rest.strip() else self._list_methods()
            case ":sources":
                self._show_sources(rest.split())
            case ":reset":
                self._turns.clear()
                self._answer = None
            case ":help":
                for name, what in _COMMANDS.items():
                    console.note(f"{name:<9}{what}")
            case _:
                raise InputError(f"there is no command {command}: :help lists them")

    def _ask(self, question: str) -> None:
        from graphrag_pipeline.query import Ask
        from graphrag_pipeline.query.control import Control

        asked = Ask(
            question=question,
            method=self._method,
            parameters=self._parameters,
            history=self._turns,
        )
        control = Control()
        with self._holder.lease() as engine, _stopped_by_ctrl_c(control):
            self._tell_if_new(engine)
            stream = engine.controlled(control).stream_answer(asked)
            answer_views.show_stream(stream)
        self._answer = stream.answer
        self._turns += [("user", question), ("assistant", stream.answer.text)]

    def _tell_if_new(self, engine: QueryEngine) -> None:
        if (release := engine.index.facts.id) != self._release:
            self._release = release
            console.note(f"A new release is published: {release}")

    def _choose(self, spec: str) -> None:
        """Ask by another method from now on. Raises InputError where it cannot answer."""
        from graphrag_pipeline.query.methods import method_named, read_method

        name, parameters = read_method(spec)
        method_named(name).parametrise(parameters, self._holder.settings)
        with self._holder.lease() as engine:
            engine.check(name, parameters)
        self._spec, self._method, self._parameters = spec, name, parameters

    def _list_methods(self) -> None:
        from graphrag_pipeline.query.methods import list_methods

        rows: list[Sequence[Any]] = [
            ("*" if method["name"] == self._method else "", method["name"], method["summary"])
            for method in list_methods(self._holder.settings, self._holder.tables())
            if method["can_answer"]
        ]
        console.table(("", "method", "what it finds"), rows)

    def _show_sources(self, numbers: Sequence[str]) -> None:
        if self._answer is None:
            raise InputError("there is no answer yet: ask something first")
        if any(not number.isdecimal() for number in numbers):
            raise InputError(":sources takes the numbers of citations, as in :sources 1 3")
        wanted = {int(number) for number in numbers}
        if lacking := sorted(wanted - {each.number for each in self._answer.citations}):
            raise InputError(f"the last answer has no citation {lacking[0]}")
        answer_views.show_sources(self._answer.citations, sorted(wanted))


@contextlib.contextmanager
def _stopped_by_ctrl_c(control: Control) -> Iterator[None]:
    """Have Ctrl-C interrupt the SQL of a question, too, which runs in another thread."""

    def stop(number: int, frame: FrameType | None) -> None:
        control.stop(_STOPPED)
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
