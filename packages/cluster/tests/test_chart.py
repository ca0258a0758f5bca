"""What Dagster's published Helm chart makes of our values, read here and by kubectl.

Neither chart nor tools are this project's: ``TESTS_DAGSTER_CHART`` names the chart's folder,
``TESTS_HELM`` and ``TESTS_KUBECTL`` the programs where they are not on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes.client
import pytest
import yaml
from dagster._config import process_config, resolve_to_config_type
from dagster_k8s import K8sRunLauncher
from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict

DEPLOY = Path(__file__).parents[1] / "deploy"
VALUES = DEPLOY / "helm" / "values.yaml"
COORDINATOR = DEPLOY / "kubernetes" / "coordinator.yaml"
CHART_VARIABLE = "TESTS_DAGSTER_CHART"
NAMESPACE = "graphrag"
KINDS = {
    "v1": ("ServiceAccount", "ConfigMap", "Service", "PersistentVolumeClaim"),
    "apps/v1": ("Deployment",),
    "rbac.authorization.k8s.io/v1": ("Role", "RoleBinding"),
}
SECRETS = {"dagster-postgresql-secret", "graphrag"}
"""What docs/how-to/workers.md has people make before."""


def tool(variable: str, name: str) -> str:
    program = os.environ.get(variable) or shutil.which(name)
    return program or pytest.skip(f"no {name} here: name it in {variable}")


@pytest.fixture(scope="module")
def chart() -> Path:
    given = os.environ.get(CHART_VARIABLE)
    return Path(given or pytest.skip(f"no chart here: name its folder in {CHART_VARIABLE}"))


@pytest.fixture(scope="module")
def rendered(chart: Path) -> str:
    """The chart with our values. Its schema asks a server of Kubernetes' own, so helm skips it."""
    helm = [tool("TESTS_HELM", "helm"), "template", "dagster", str(chart)]
    given = ["--values", str(VALUES), "--namespace", NAMESPACE, "--skip-schema-validation"]
    done = subprocess.run([*helm, *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def objects(rendered: str) -> dict[tuple[str, str], dict[str, Any]]:
    """All that is applied, the coordinator too, by kind and name."""
    texts = (rendered, COORDINATOR.read_text())
    parsed = [each for text in texts for each in yaml.safe_load_all(text) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in parsed}


@pytest.fixture(scope="module")
def launcher(objects: dict[tuple[str, str], Any]) -> dict[str, Any]:
    """The launcher of runs in the dagster.yaml that the chart writes."""
    text = objects["ConfigMap", "dagster-instance"]["data"]["dagster.yaml"]
    return yaml.safe_load(text)["run_launcher"]


@pytest.fixture(scope="module")
def pods(objects: dict[tuple[str, str], Any]) -> dict[str, dict[str, Any]]:
    """The pods of all deployments, by name."""
    return {
        name: each["spec"]["template"]["spec"]
        for (kind, name), each in objects.items()
        if kind == "Deployment"
    }


def without_remote(schema: Any) -> Any:
    """Return a schema that asks nobody for Kubernetes' own types."""
    if isinstance(schema, dict):
        if str(schema.get("$ref", "")).startswith("http"):
            return {}
        return {key: without_remote(value) for key, value in schema.items()}
    return [without_remote(each) for each in schema] if isinstance(schema, list) else schema


def test_the_values_fit_the_schema_of_the_chart(chart: Path) -> None:
    schema = without_remote(json.loads((chart / "values.schema.json").read_text()))
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    given = yaml.safe_load(VALUES.read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(merged(defaults, given))] == []
    # It is closed: what it does not know is seen.
    wrong = merged(defaults, {"runLauncher": {"config": {"k8sRunLauncher": {"imagee": {}}}}})
    assert not validator.is_valid(wrong)


def merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as helm merges them."""
    whole = dict(defaults)
    for key, value in given.items():
        before = whole.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        whole[key] = merged(before, value) if both else value
    return whole


def test_runs_are_pods_of_our_image_with_secrets_limits_and_few_rights(
    launcher: dict[str, Any], pods: dict[str, Any]
) -> None:
    assert launcher["class"] == K8sRunLauncher.__name__
    config = launcher["config"]
    schema = resolve_to_config_type(K8sRunLauncher.config_type())
    assert process_config(schema, config).errors in (None, [])
    (coordinator,) = pods["graphrag-coordinator"]["containers"]
    assert config["job_image"] == coordinator["image"]
    assert config["job_namespace"] == NAMESPACE
    assert {config["postgres_password_secret"], *config["env_secrets"]} == SECRETS
    assert config["env_config_maps"] == ["graphrag"]
    assert set(config["resources"]["limits"]) == {"memory", "ephemeral-storage"}
    assert config["security_context"]["readOnlyRootFilesystem"] is True
    assert {each["name"] for each in config["volumes"]} == {"home", "tmp"}
    assert {each["mountPath"] for each in config["volume_mounts"]} == {"/data", "/tmp"}
    run = config["run_k8s_config"]
    assert run["container_config"]["command"] == ["env"]
    assert run["pod_spec_config"]["automountServiceAccountToken"] is False
    assert run["pod_spec_config"]["securityContext"]["runAsNonRoot"] is True
    assert run["job_spec_config"]["backoffLimit"] == 0


def test_each_container_that_stays_has_limits_and_is_looked_at(pods: dict[str, Any]) -> None:
    assert {"graphrag-coordinator", "dagster-daemon"} < set(pods)
    for name, pod in pods.items():
        for container in pod["containers"]:
            assert "memory" in container["resources"]["limits"], name
            assert container["securityContext"]["allowPrivilegeEscalation"] is False, name
            # The coordinator listens to nothing: it loses its lease.
            assert "livenessProbe" in container or name == "graphrag-coordinator", name


def test_what_is_named_is_there(
    objects: dict[tuple[str, str], Any], pods: dict[str, Any], launcher: dict[str, Any]
) -> None:
    accounts = {pod.get("serviceAccountName") for pod in pods.values()}
    assert accounts == {"dagster"} == {launcher["config"]["service_account_name"]}
    assert ("ServiceAccount", "dagster") in objects
    text = json.dumps([*pods.values(), launcher])
    for kind, found in (("ConfigMap", "configMapRef"), ("Secret", "secretKeyRef")):
        for name in set(named(json.loads(text), found)):
            assert (kind, name) in objects or name in SECRETS, name
    claims = {name for kind, name in objects if kind == "PersistentVolumeClaim"}
    assert claims == {"graphrag-home"}
    # No secret is written down: people make both.
    assert not [name for kind, name in objects if kind == "Secret"]
    # The coordinator asks for jobs under the chart's account, which may make them in its namespace.
    (role,) = [each for (kind, _), each in objects.items() if kind == "Role"]
    assert any("jobs" in rule["resources"] and "create" in rule["verbs"] for rule in role["rules"])
    assert not [kind for kind, _ in objects if kind.startswith("Cluster")]


def named(part: Any, by: str) -> Iterator[str]:
    """Yield the names under a key, however deep."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == by:
                yield value["name"]
            else:
                yield from named(value, by)
    elif isinstance(part, list):
        for each in part:
            yield from named(each, by)


def test_nothing_is_reached_from_outside(objects: dict[tuple[str, str], Any]) -> None:
    services = [each for (kind, _), each in objects.items() if kind == "Service"]
    assert [each["spec"]["type"] for each in services] == ["ClusterIP"]
    assert not [kind for kind, _ in objects if kind == "Ingress"]


def test_all_is_as_kubernetes_knows_it(objects: dict[tuple[str, str], Any]) -> None:
    for (kind, _), each in objects.items():
        model = getattr(kubernetes.client, f"V1{kind}")
        k8s_model_from_dict(model, k8s_snake_case_dict(model, without_empty(each)))


def without_empty(part: Any) -> Any:
    """Return an object without what the chart leaves empty."""
    if isinstance(part, dict):
        return {key: without_empty(value) for key, value in part.items() if value is not None}
    return [without_empty(each) for each in part] if isinstance(part, list) else part


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a Kubernetes that knows the kinds above and has nothing yet."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = discovered(self.path.partition("?")[0])
            body = json.dumps(said or {"kind": "Status", "reason": "NotFound", "code": 404})
            self.send_response(200 if said else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def discovered(path: str) -> dict[str, Any] | None:
    """Return what Kubernetes says of its kinds, None for anything else."""
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        versions = [
            {"groupVersion": each, "version": "v1"} for each in KINDS if each.count("/") == 1
        ]
        groups = [
            {"name": each["groupVersion"].partition("/")[0], "versions": [each]}
            for each in versions
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    version = path.removeprefix("/apis/").removeprefix("/api/")
    if version not in KINDS:
        return None
    resources = [
        {"name": f"{kind.lower()}s", "kind": kind, "namespaced": True, "verbs": ["get", "create"]}
        for kind in KINDS[version]
    ]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


def test_kubectl_would_create_all_of_it(
    rendered: str, objects: dict[tuple[str, str], Any], server: str, tmp_path: Path
) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(f"{rendered}\n---\n{COORDINATOR.read_text()}")
    kubectl = [tool("TESTS_KUBECTL", "kubectl"), "--server", server, "--namespace", NAMESPACE]
    # Types are checked above: the server has no schema to give.
    dry = ["apply", "--dry-run=client", "--validate=false", "--filename", str(file)]
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run([*kubectl, *dry], capture_output=True, text=True, env=home, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("created (dry run)") == len(objects)
