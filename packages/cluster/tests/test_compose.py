"""compose.cluster.yaml: what `docker compose --profile cluster up` starts."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from test_container import ROOT, by_default, of
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.settings import load_settings


@pytest.fixture(scope="module")
def cluster() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "compose.cluster.yaml").read_text())


def test_a_cluster_has_all_services_and_one_profile(cluster: dict[str, Any]) -> None:
    services = cluster["services"]
    ours, stores = {"coordinator", "worker", "server"}, {"postgres", "redis", "s3"}
    assert set(services) == ours | stores | {"bucket"}
    for name, service in services.items():
        assert service["profiles"] == ["cluster"]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "container_name" not in service
        assert re.fullmatch(r"[a-z/-]+:\S*\d\S*|graphrag-pipeline:cluster", service["image"]), name
        for volume in service.get("volumes", []):
            source, _, target = volume.partition(":")
            assert source in cluster["volumes"] or target.endswith(":ro")
    # Only the server is reached from this machine, and from no other.
    ports = {name: each["ports"] for name, each in services.items() if "ports" in each}
    assert ports == {"server": ["127.0.0.1:8000:8000"]}
    assert cluster["networks"]["stores"] == {"internal": True}
    assert all(services[name]["networks"] == ["stores"] for name in stores | {"bucket"})
    # What others wait for can be seen to be there.
    for service in services.values():
        for name, how in service.get("depends_on", {}).items():
            seen = "test" in services[name].get("healthcheck", {})
            assert seen == (how["condition"] == "service_healthy")
            assert services[name]["restart"] == ("unless-stopped" if seen else "on-failure")


def test_no_password_of_a_cluster_is_written_down(cluster: dict[str, Any]) -> None:
    secret = re.compile(r"\$\{\w+_PASSWORD:\?set it in \.env\}")
    for name, service in cluster["services"].items():
        for variable, value in service["environment"].items():
            if variable.endswith(("PASSWORD", "AUTH", "SECRET_ACCESS_KEY")):
                assert secret.fullmatch(value), (name, variable)
            if variable in ("GRAPHRAG_POSTGRES_URL", "GRAPHRAG_BROKER_URL"):
                assert secret.search(value), (name, variable)
        assert "_PASSWORD:" not in str(service.get("command"))


def test_services_of_a_cluster_find_each_other_by_their_settings(
    cluster: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    services = cluster["services"]
    variables = dict(word.split("=", 1) for each in of("ENV") for word in each.words)
    for name in ("coordinator", "worker", "server"):
        given = {key: by_default(value) for key, value in services[name]["environment"].items()}
        for variable, value in {**variables, **given}.items():
            if variable.startswith(("GRAPHRAG_", "AWS_")):
                monkeypatch.setenv(variable, value)
        settings = load_settings()
        assert settings.workers.launcher == "celery"
        hosts = [urlsplit(s.reveal()).hostname for s in (settings.postgres, settings.broker)]
        assert [*hosts, urlsplit(given["AWS_ENDPOINT_URL"]).hostname] == ["postgres", "redis", "s3"]
        bucket = urlsplit(settings.storage.url).netloc
        assert f"here/{bucket}" in services["bucket"]["command"][0]
        keys = services["s3"]["environment"]
        assert given["AWS_ACCESS_KEY_ID"] == keys["MINIO_ROOT_USER"]
        assert given["AWS_SECRET_ACCESS_KEY"] == by_default(keys["MINIO_ROOT_PASSWORD"])
        assert CliRunner().invoke(app, [*services[name]["command"], "--help"]).exit_code == 0
    address = urlsplit(settings.postgres.reveal())
    store = services["postgres"]["environment"]
    assert address.username == store["POSTGRES_USER"]
    assert address.password == by_default(store["POSTGRES_PASSWORD"])
    assert address.path == f"/{store['POSTGRES_DB']}"


def test_the_image_of_a_cluster_has_what_it_needs(cluster: dict[str, Any]) -> None:
    (argument,) = of("ARG")
    usual = argument.rest.removeprefix("EXTRAS=").split(",")
    extras = cluster["services"]["worker"]["build"]["args"]["EXTRAS"].split(",")
    assert set(usual) == {"evaluation", "server", "ui", "marts"}
    assert set(extras) == {"evaluation", "server", "cluster", "marts"}
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {*usual, *extras} <= set(described["project"]["optional-dependencies"])
    (install,) = [each.rest for each in of("RUN") if "pip install" in each.rest]
    assert '".[${EXTRAS}]"' in install
