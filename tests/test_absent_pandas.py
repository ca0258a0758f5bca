"""What is not installed is looked for once, and found as soon as it is."""

import importlib.util
import subprocess
import sys

import pytest

TRIES = """
import importlib.machinery, importlib.util, sys, time
import graphrag_pipeline.store.index_store
import duckdb
sys.modules.pop("pandas", None)
sys.path[:] = {folders}
class Finder:
    looked = 0
    def find_spec(self, name, path=None, target=None):
        self.looked += name == "pandas"
counting = Finder()
sys.meta_path.append(counting)
con = duckdb.connect()
for value in range(50):
    con.execute("SELECT ?", [value])
print(counting.looked, importlib.util.find_spec("pandas"), counting.looked)
"""


@pytest.mark.skipif(importlib.util.find_spec("pandas") is not None, reason="pandas is installed")
def test_pandas_is_looked_for_once_in_a_second_and_others_are_told_the_truth(tmp_path):
    script = TRIES.format(folders=[*sys.path])
    (tmp_path / "pandas.py").write_text("NaT = NA = DataFrame = None\n")
    script += f"""
sys.path.append({str(tmp_path)!r})
time.sleep(1.1)
import pandas
print(pandas.__file__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    counts, found = done.stdout.splitlines()
    looked, spec, afterwards = counts.split()
    assert 1 <= int(looked) <= 25
    assert (spec, int(afterwards)) == ("None", int(looked) + 1)
    assert found == str(tmp_path / "pandas.py")
