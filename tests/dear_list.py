"""Write tests/dear_cases.txt: the cases that take most CPU, from what a run has measured.

``COST_OF_TESTS=build/cost python -m pytest -n auto && python tests/dear_list.py build/cost``

A run of some files says nothing of the others: what the list has of those stays.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SECONDS = 1.3
"""Cases that take as much CPU: a tenth of all, which take four fifths of the time."""
LIST = Path(__file__).with_name("dear_cases.txt")


def main(folder: Path) -> None:
    """Read the files of all workers, write the list, and print what it leaves to `make test`."""
    seconds: dict[str, float] = {}
    for file in folder.glob("*.json"):
        seconds |= json.loads(file.read_text())
    files = {_file(case) for case in seconds}
    others = [case for case in LIST.read_text().splitlines() if _file(case) not in files]
    dear = [case for case in seconds if seconds[case] >= SECONDS]
    LIST.write_text("".join(f"{case}\n" for case in sorted([*others, *dear])))
    total, left = sum(seconds.values()), sum(seconds[case] for case in seconds.keys() - dear)
    sys.stdout.write(
        f"{len(dear)} of {len(seconds)} cases take {total - left:.0f} of {total:.0f} s\n"
    )


def _file(case: str) -> str:
    return case.partition("::")[0]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
