"""One coordinator at a time: a lease in Postgres that fences off those who come late."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import cluster_services
import pytest
from graphrag_cluster.lease import (
    LEASE_SECONDS,
    Lease,
    coordinating,
    current_release,
    seconds_without_coordinator,
)
from graphrag_cluster.postgres import Postgres

from graphrag_pipeline.core.environment import POSTGRES
from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.settings import Settings, load_settings

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def server():
    with cluster_services.postgres() as service:
        yield service


@pytest.fixture
def shared(server, tmp_path):
    """Settings of an index that no other test has."""
    storage = {"url": f"s3://bucket/{tmp_path.name}", "postgres": server.address}
    return Settings(home=str(tmp_path), storage=storage)


def test_a_second_coordinator_is_refused_in_one_line_that_names_the_first(shared):
    with coordinating(shared) as lease:
        with pytest.raises(StorageError) as caught, coordinating(shared):
            pass
        said = str(caught.value)
        assert f"pid {os.getpid()}" in said
        assert socket.gethostname() in said
        assert shared.storage.url in said
        assert "\n" not in said
        assert caught.value.exit_code == 5
        lease.check()
    # Another thread may have shared it.
    with pytest.raises(StorageError, match="is lost"):
        lease.check()
    with coordinating(shared) as next_one:
        assert next_one.fence == lease.fence + 1


def test_a_release_is_current_once_it_is_published_and_by_index(shared, server, tmp_path):
    other = shared.storage.model_copy(update={"url": f"file://{tmp_path}/other"})
    assert current_release(shared) is None
    with coordinating(shared) as lease:
        lease.publish("first")
        assert current_release(shared) == "first"
        lease.publish("second")
    assert current_release(shared) == "second"
    assert current_release(shared.model_copy(update={"storage": other})) is None


def test_how_long_nobody_has_coordinated_is_known(shared):
    assert seconds_without_coordinator(shared) == float("inf")
    with coordinating(shared):
        assert seconds_without_coordinator(shared) == 0
    time.sleep(0.2)
    assert 0 < seconds_without_coordinator(shared) < 600


def test_a_lease_outlives_its_first_seconds_because_it_is_renewed(shared):
    with coordinating(shared, seconds=2) as lease:
        time.sleep(2.5)
        lease.check()
        with pytest.raises(StorageError, match="another process coordinates"), coordinating(shared):
            pass


HOLDS = """
import sys, time
from graphrag_pipeline.core.settings import Settings
from graphrag_cluster.lease import coordinating
with coordinating(Settings.exactly(eval(sys.argv[1])), seconds=1.5) as lease:
    print(lease.fence, flush=True)
    sys.stdin.readline()
    lease.publish("too late")
"""


@pytest.fixture
def holder(shared):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, repr(shared.as_set())],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    yield process
    process.kill()
    process.communicate()


def taken_over(shared):
    """Take the lease of a process that is heard of no more, and return it."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return Lease(Postgres.of(shared), LEASE_SECONDS)
        except StorageError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_the_lease_of_a_killed_coordinator_ends_by_itself(shared, holder):
    fence = int(holder.stdout.readline())
    holder.kill()
    lease = taken_over(shared)
    assert lease.fence == fence + 1
    lease.publish("mine")
    assert current_release(shared) == "mine"
    lease.let_go()


def test_a_coordinator_that_slept_while_another_took_its_place_publishes_nothing(shared, holder):
    holder.stdout.readline()
    holder.send_signal(signal.SIGSTOP)
    lease = taken_over(shared)
    lease.publish("mine")
    holder.send_signal(signal.SIGCONT)
    _, errors = holder.communicate("go on\n", timeout=30)
    assert "StorageError: the lease of the coordinator is lost" in errors
    assert current_release(shared) == "mine"
    lease.check()
    lease.let_go()


def test_a_coordinator_lives_through_a_restart_of_postgres(shared, server):
    with coordinating(shared, seconds=20) as lease:
        server.stop()
        server.start()
        lease.publish("after")
        lease.check()
    assert current_release(shared) == "after"


def test_a_lease_that_cannot_be_renewed_is_lost(shared, server):
    with coordinating(shared, seconds=0.9) as lease:
        server.kill()
        try:
            time.sleep(1.2)
            with pytest.raises(StorageError, match="the lease of the coordinator is lost"):
                lease.check()
        finally:
            server.start()


def test_postgres_that_is_away_is_one_line_without_the_password(monkeypatch, tmp_path):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        monkeypatch.setenv(POSTGRES, f"postgresql://me:hunter2@127.0.0.1:{port}/db")
        settings = Settings(home=str(tmp_path), storage={"url": "s3://bucket"})
        with pytest.raises(StorageError) as caught, coordinating(settings):
            pass
    assert str(caught.value).startswith(f"cannot use Postgres at 127.0.0.1:{port}: Connection refu")
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hun/ter2@127.0.0.1:1/db",
        "postgresql://me:hun@hunter2@127.0.0.1:1/db",
        "host=127.0.0.1 port=1 password='hunter2",
        "hunter2",
        "password=hunter2 port=hunter2",
    ],
)
def test_an_address_that_is_none_is_not_shown(monkeypatch, tmp_path, address):
    monkeypatch.setenv(POSTGRES, address)
    settings = Settings(home=str(tmp_path), storage={"url": "s3://bucket"})
    with pytest.raises((StorageError, ConfigError)) as caught, coordinating(settings):
        pass
    assert "ter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_newer_schema_is_refused_in_one_line_and_left_as_it_is(shared):
    with coordinating(shared):
        pass
    place = Postgres.of(shared)
    with place.connect() as con:
        con.execute("UPDATE schema_version SET version = version + 1")
        ((newer,),) = con.execute("SELECT version FROM schema_version").fetchall()
    with pytest.raises(StorageError, match=f"newer program keeps it .version {newer}") as caught:
        current_release(shared)
    assert "\n" not in str(caught.value)


def test_many_that_make_the_tables_at_once_make_them_once(shared):
    code = (
        "import sys; from graphrag_pipeline.core.settings import Settings;"
        "from graphrag_cluster.lease import current_release as c;"
        "print(c(Settings.exactly(eval(sys.argv[1]))))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, repr(shared.as_set())],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(4)
    ]
    assert [process.communicate(timeout=60)[0] for process in processes] == ["None\n"] * 4


def test_a_password_is_in_no_settings_and_in_no_dump_of_them(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"{POSTGRES}=postgresql://me:hunter2@host/db\n")
    (tmp_path / "graphrag.toml").write_text('[storage]\nurl = "s3://bucket/index/"\n')
    settings = load_settings()
    assert settings.storage.url == "s3://bucket/index"
    assert settings.postgres.reveal() == "postgresql://me:hunter2@host/db"
    everywhere = (
        repr(settings), str(settings), json.dumps(settings.as_set()), settings.model_dump_json(),
        repr(Postgres.of(settings)), str(Postgres.of(settings)), repr(settings.postgres),
    )  # fmt: skip
    assert "hunter2" not in "".join(everywhere)
    assert Settings.exactly(settings.as_set()).postgres == settings.postgres
