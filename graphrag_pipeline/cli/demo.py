"""`make demo`: the sample corpus indexed and asked, by the commands a user would type."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMMAND = "graphrag-pipeline"
CORPUS = "examples/corpus"
LOCAL = "Who was the source called Heron?"
GLOBAL = "What are the main themes of these documents?"

NEXT = """
What to try next, with .venv/bin on your PATH (source .venv/bin/activate):

  graphrag-pipeline query "Who paid Nils Okker a pension, and why?"
  graphrag-pipeline sql "SELECT title, type, degree FROM entities ORDER BY degree DESC LIMIT 10"
  graphrag-pipeline explore               the graph as a page to look around in
  graphrag-pipeline report                the corpus at a glance, to read or send
  graphrag-pipeline status
  graphrag-pipeline index YOUR_FOLDER     your own documents, beside these
  graphrag-pipeline init                  a graphrag.toml with every setting
  make ui                                 lineage, partitions and checks in Dagster
"""


def main() -> None:
    """Index the sample corpus, ask a local and a global question, say what to try next."""
    if not Path(CORPUS).is_dir():
        raise SystemExit(f"error: {CORPUS} is not here: run this in the project's folder")
    _run("index", CORPUS)
    _run("query", LOCAL, "--method", "local")
    _run("query", GLOBAL, "--method", "global", "--level", "0")
    sys.stdout.write(NEXT)


def _run(*arguments: str) -> None:
    command = " ".join(f'"{a}"' if " " in a else a for a in arguments)
    sys.stdout.write(f"\n$ {COMMAND} {command}\n")
    sys.stdout.flush()
    process = subprocess.run(
        [sys.executable, "-m", "graphrag_pipeline.cli", *arguments], check=False
    )
    if process.returncode:
        raise SystemExit(process.returncode)


if __name__ == "__main__":
    main()
