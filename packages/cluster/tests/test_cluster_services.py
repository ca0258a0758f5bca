"""The services of tests: they end with who started them, however that ends."""

import os
import shutil
import signal
import subprocess
import sys
import time

import cluster_services
import pytest

pytestmark = pytest.mark.cluster

STARTS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import cluster_services as services
with services.postgres() as a, services.redis() as b, services.s3() as c:
    own = [each for each in (a, b, c.service) if each]
    print(*(f"{each.pid} {each.folder}" for each in own), flush=True)
    time.sleep(600)
"""


def runs(pid):
    """Whether a process runs; one that has ended and is not waited for yet does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_services_end_with_a_test_that_is_killed():
    with cluster_services.postgres(), cluster_services.redis():
        pass
    tests = os.path.dirname(cluster_services.__file__)
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS, tests], stdout=subprocess.PIPE, text=True
    )
    words = process.stdout.readline().split()
    pids, folders = [int(word) for word in words[::2]], words[1::2]
    assert pids
    assert all(map(runs, pids))
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 30
    while any(map(runs, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
