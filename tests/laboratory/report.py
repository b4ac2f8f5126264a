"""What audits saw, kept as lines of JSON under build/audits, and shown as one table for docs/audits.md.

python -m tests.laboratory.report
"""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

FOLDER = Path("build/audits")


def note(audit: str, **counts: Any) -> None:
    """Add what one part of an audit saw: numbers are added up over all parts."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{audit}-{os.getpid()}.jsonl").open("a") as stream:
        stream.write(json.dumps(counts) + "\n")


def totals() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(int))
    for path in sorted(FOLDER.glob("*.jsonl")):
        audit = path.stem.rpartition("-")[0]
        for line in path.read_text().splitlines():
            for name, value in json.loads(line).items():
                found[audit][name] += value
    return {audit: dict(counts) for audit, counts in found.items()}


def main() -> None:
    for audit, counts in totals().items():
        print(f"{audit}: " + ", ".join(f"{value:,} {name}" for name, value in counts.items()))


if __name__ == "__main__":
    main()
