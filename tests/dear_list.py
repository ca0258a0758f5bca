"""Write tests/dear_cases.txt: the cases that take most CPU, from what a run has measured.

``COST_OF_TESTS=build/cost python -m pytest -n auto && python tests/dear_list.py build/cost``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SHARE = 0.05
"""Of all cases, as many: they take more than half of the time."""


def main(folder: Path) -> None:
    """Read the files of all workers, write the list, and print what it leaves to `make test`."""
    seconds: dict[str, float] = {}
    for file in folder.glob("*.json"):
        seconds |= json.loads(file.read_text())
    dearest = sorted(seconds, key=lambda case: (-seconds[case], case))
    dear = dearest[: round(SHARE * len(dearest))]
    Path(__file__).with_name("dear_cases.txt").write_text("".join(f"{c}\n" for c in sorted(dear)))
    total, left = sum(seconds.values()), sum(seconds[case] for case in dearest[len(dear) :])
    sys.stdout.write(
        f"{len(dear)} of {len(seconds)} cases take {total - left:.0f} of {total:.0f} s\n"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
