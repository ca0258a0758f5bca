"""A Dockerfile read, and run line by line in folders that stand for its stages.

That needs no builder, only root's rights and a Debian root to begin with. What a builder does
besides (layers, the network of a container, limits of memory) is not imitated.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PATIENCE = 1800
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""What this machine trusts, which stands in /etc of every stage."""
_OF_THE_NETWORK = (Path("/etc/resolv.conf"), Path("/etc/hosts"), CERTIFICATES)


@dataclass(frozen=True)
class Instruction:
    """An instruction and what follows it, in one line."""

    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """The words of a list in JSON, else of the line."""
        return json.loads(self.rest) if self.rest.startswith("[") else self.rest.split()


@dataclass
class Stage:
    """What a stage has come to: its files, its environment, its user and where it stands."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    folder: str = "/"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def run(self, command: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the stage, with nothing of the environment around it."""
        inside = ["env", "-i", *(f"{n}={v}" for n, v in {**self.environment, **more}.items())]
        goes = ["sh", "-c", 'cd "$0" && exec "$@"', self.folder, *command]
        where = ["chroot", f"--userspec={self.user}", str(self.root)]
        return subprocess.run(
            [*where, *inside, *goes], capture_output=True, text=True, timeout=_PATIENCE
        )


def instructions(path: Path) -> list[Instruction]:
    """Return the instructions of a Dockerfile, comments left out."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\n", " ", "\n".join(lines))
    parts = [line.strip().split(None, 1) for line in whole.splitlines() if line.strip()]
    return [Instruction(name, " ".join(rest.split())) for name, rest in parts]


def build(
    path: Path,
    base: Path,
    place: Path,
    network: Mapping[str, str],
    arguments: Mapping[str, str],
) -> Stage:
    """Run a Dockerfile on copies of a Debian root; return its last stage.

    ``network`` are variables for the time of the building, such as that of a proxy; ``arguments``
    those that the Dockerfile asks for (ARG), in place of its own.
    """
    stages: dict[str, Stage] = {}
    stage = Stage(base)
    for number, instruction in enumerate(instructions(path)):
        words = instruction.words
        match instruction.name:
            case "FROM":
                stage = _begun(base, place / f"stage{number}")
                stages[words[-1]] = stage
            case "RUN":
                done = stage.run(["sh", "-c", instruction.rest], **network, **stage.arguments)
                assert done.returncode == 0, f"{instruction.rest}\n{done.stdout}{done.stderr}"
            case "COPY":
                _copy(words, path.parent, stages, stage)
            case "ARG":
                name, _, value = instruction.rest.partition("=")
                stage.arguments[name] = arguments.get(name, value)
            case "ENV":
                stage.environment |= dict(word.split("=", 1) for word in words)
            case "USER":
                stage.user = instruction.rest
            case "WORKDIR":
                stage.folder = instruction.rest
                (stage.root / stage.folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "ENTRYPOINT":
                stage.entrypoint = words
            case "CMD":
                stage.command = words
            case "VOLUME" | "EXPOSE" | "HEALTHCHECK":
                pass
            case other:
                raise AssertionError(f"cannot run {other}")
    return stage


def _begun(base: Path, root: Path) -> Stage:
    subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(root)], check=True)
    for file in _OF_THE_NETWORK:
        if file.exists():
            shutil.copy(file, root / "etc" / file.name)
    return Stage(
        root, environment={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    )


def _copy(words: list[str], context: Path, stages: Mapping[str, Stage], stage: Stage) -> None:
    source = context
    if words[0].startswith("--from="):
        source = stages[words.pop(0).removeprefix("--from=")].root
    *names, target = words
    goal = stage.root / os.path.join(stage.folder, target).lstrip("/")
    for name in names:
        into = goal / Path(name).name if target.endswith("/") else goal
        into.parent.mkdir(parents=True, exist_ok=True)
        # A folder's content goes into the folder; links stay links.
        subprocess.run(["cp", "-aT", str(source / name.lstrip("/")), str(into)], check=True)
