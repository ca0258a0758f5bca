"""Write tests/dear_cases.txt: the cases that take most CPU, from what a run has measured.

``COST_OF_TESTS=build/cost python -m pytest -n auto && python tests/dear_list.py build/cost``

A run of some files says nothing of the others: what the list has of those stays. A file whose
cases share what takes long to make is listed by its name, by hand: else `make core` makes it for
some of them, and `make dear` again for the others.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SECONDS = 0.6
"""Cases that take as much CPU, on a machine that is not busy: a sixth of all, which take five
sixths of the time."""
LIST = Path(__file__).with_name("dear_cases.txt")


def main(folder: Path) -> None:
    """Read the files of all workers, write the list, and print what it leaves to `make test`."""
    seconds: dict[str, float] = {}
    for file in folder.glob("*.json"):
        seconds |= json.loads(file.read_text())
    files = {_file(case) for case in seconds}
    listed = LIST.read_text().splitlines()
    whole = {line for line in listed if line == _file(line)}
    others = [line for line in listed if line in whole or _file(line) not in files]
    dear = [case for case in seconds if seconds[case] >= SECONDS or _file(case) in whole]
    alone = [case for case in dear if _file(case) not in whole]
    LIST.write_text("".join(f"{line}\n" for line in sorted([*others, *alone])))
    total, left = sum(seconds.values()), sum(seconds[case] for case in seconds.keys() - dear)
    sys.stdout.write(
        f"{len(dear)} of {len(seconds)} cases take {total - left:.0f} of {total:.0f} s\n"
    )


def _file(case: str) -> str:
    return case.partition("::")[0]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
