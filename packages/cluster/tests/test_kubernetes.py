"""A pod for each batch: our values of Dagster's chart, and runs that a launcher so set makes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import dagster as dg
import jsonschema
import kubernetes
import pytest
import yaml
from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict
from graphrag_cluster.dispatch import NotLaunchedError
from graphrag_cluster.objects import ObjectStore
from graphrag_cluster.postgres import Session
from graphrag_cluster.runs import DagsterRuns
from kubernetes_server import Kubernetes

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.store.workspace import Workspace

PLACE = Path(__file__).parents[1]
PASSWORD = "of-tests"
MODELS = {
    "PersistentVolumeClaim": kubernetes.client.V1PersistentVolumeClaim,
    "Deployment": kubernetes.client.V1Deployment,
    "ConfigMap": kubernetes.client.V1ConfigMap,
}


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    return yaml.safe_load((PLACE / "deploy" / "helm" / "values.yaml").read_text())


@pytest.fixture(scope="module")
def manifests() -> dict[str, dict[str, Any]]:
    text = (PLACE / "deploy" / "kubernetes" / "coordinator.yaml").read_text()
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def launcher_of(values: dict[str, Any], kubeconfig: Path) -> dict[str, Any]:
    """Return what the chart makes of the values for ``run_launcher``, on this test's Kubernetes."""
    given = values["runLauncher"]["config"]["k8sRunLauncher"]
    snake = {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in name): value
        for name, value in given["runK8sConfig"].items()
    }
    config = {
        "load_incluster_config": False,
        "kubeconfig_file": str(kubeconfig),
        "image_pull_policy": given["imagePullPolicy"],
        "service_account_name": "dagster",
        "job_image": f"{given['image']['repository']}:{given['image']['tag']}",
        "dagster_home": values["global"]["dagsterHome"],
        "instance_config_map": "dagster-instance",
        "postgres_password_secret": values["global"]["postgresqlSecretName"],
        "env_secrets": [each["name"] for each in given["envSecrets"]],
        "env_config_maps": [each["name"] for each in given["envConfigMaps"]],
        "volumes": given["volumes"],
        "volume_mounts": given["volumeMounts"],
        "resources": given["resources"],
        "security_context": given["securityContext"],
        "run_k8s_config": snake,
    }
    return {"module": "dagster_k8s", "class": "K8sRunLauncher", "config": config}


# The files


def test_the_values_are_those_that_the_chart_knows(values: dict[str, Any]) -> None:
    schema = json.loads((PLACE / "tests" / "dagster_chart_values.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(values)


def test_the_chart_is_that_of_the_dagster_that_is_installed() -> None:
    text = (PLACE / "deploy" / "helm" / "values.yaml").read_text()
    assert set(re.findall(r"\d+\.\d+\.\d{2,}", text)) == {dg.__version__}


def test_the_coordinator_is_as_kubernetes_knows_it(manifests: dict[str, Any]) -> None:
    for kind, manifest in manifests.items():
        model = MODELS[kind]
        k8s_model_from_dict(model, k8s_snake_case_dict(model, manifest))


def test_coordinator_and_pods_of_batches_have_one_image_and_the_same_settings(
    values: dict[str, Any], manifests: dict[str, Any]
) -> None:
    given = values["runLauncher"]["config"]["k8sRunLauncher"]
    pod = manifests["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    image = given["image"]
    assert container["image"] == f"{image['repository']}:{image['tag']}"
    named = [next(iter(each.values()))["name"] for each in container["envFrom"]]
    assert named == [each["name"] for each in (*given["envSecrets"], *given["envConfigMaps"])]
    assert manifests["ConfigMap"]["metadata"]["name"] in named
    environment = {each["name"]: each for each in container["env"]}
    assert environment["DAGSTER_HOME"]["value"] == values["global"]["dagsterHome"]
    secret = environment["DAGSTER_PG_PASSWORD"]["valueFrom"]["secretKeyRef"]["name"]
    assert secret == values["global"]["postgresqlSecretName"]
    for context in (container["securityContext"], given["securityContext"]):
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
    assert pod["securityContext"] == given["runK8sConfig"]["podSpecConfig"]["securityContext"]


# Runs


@pytest.fixture
def runs(values: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest):
    """Runs that pods are started for, which only sleep."""
    secrets = {"graphrag": {}, "dagster-postgresql-secret": {"postgresql-password": PASSWORD}}
    with Kubernetes(tmp_path, secrets, instead=["sleep", "60"]) as server:
        home = tmp_path / "dagster"
        home.mkdir()
        launcher = launcher_of(values, server.kubeconfig)
        (home / "dagster.yaml").write_text(yaml.safe_dump({"run_launcher": launcher}))
        (tmp_path / "documents").mkdir()
        (tmp_path / "documents" / "dam.md").write_text("Oskar Kovarna built the Orlen Dam.")
        storage = {"url": f"file://{tmp_path}/store", "postgres": "postgresql://not.asked"}
        settings = Settings(
            home=str(tmp_path / "home"), storage=storage, workers={"launcher": "k8s"}
        )
        workspace = Workspace(settings)
        workspace.batches.cut(tmp_path / "documents", Settings().batches, max_bytes=10**6)
        objects = ObjectStore(settings.storage.url)
        with dg.DagsterInstance.from_config(str(home)) as instance:
            # Nothing that is asked here is kept in Postgres.
            session = cast("Session", None)
            yield DagsterRuns(workspace, instance, objects, session, {}, {}), server


def test_a_run_is_a_pod_that_has_little_and_may_little(runs: Any) -> None:
    dagster_runs, server = runs
    (key,) = [batch.key for batch in dagster_runs.workspace.batches.batches()]
    run_id, _ = dagster_runs.launch(key)
    (pod,) = server.pods.values()
    spec = pod.job["spec"]["template"]["spec"]
    assert pod.container["image"] == "registry.example.internal/graphrag-pipeline:0.3.0"
    assert pod.container["command"] == ["env"]
    assert pod.container["args"][:2] == ["dagster", "api"]
    assert run_id in str(pod.container["args"])
    assert spec["automountServiceAccountToken"] is False
    assert pod.container["securityContext"]["readOnlyRootFilesystem"] is True
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert PASSWORD not in json.dumps(pod.job)
    assert pod.job["spec"]["backoffLimit"] == 0


def test_a_run_whose_pod_has_ended_or_is_gone_is_lost_and_no_other(runs: Any) -> None:
    dagster_runs, server = runs
    (key,) = [batch.key for batch in dagster_runs.workspace.batches.batches()]
    living, killed, removed = (dagster_runs.launch(key)[0] for _ in range(3))
    assert dagster_runs.lost([living, killed, removed]) == {}
    pods = {run_id: f"dagster-run-{run_id}" for run_id in (living, killed, removed)}
    server.pods[pods[killed]].process.kill()
    server.pods[pods[killed]].process.wait()
    server.pods.pop(pods[removed]).process.kill()
    lost = dagster_runs.lost([living, killed, removed])
    assert set(lost) == {killed, removed}
    assert "its pod ended" in lost[killed]
    assert "its job is gone" in lost[removed]


def test_where_kubernetes_refuses_a_job_one_line_says_why(runs: Any) -> None:
    dagster_runs, server = runs
    server.refuses = True
    (key,) = [batch.key for batch in dagster_runs.workspace.batches.batches()]
    with pytest.raises(NotLaunchedError, match="403") as caught:
        dagster_runs.launch(key)
    assert "\n" not in str(caught.value)
    (run,) = dagster_runs.instance.get_runs()
    assert run.is_finished
