"""What audits saw, kept as lines of JSON under build/audits, a folder for each part, and added up at its end."""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any


def folder_of(part: str) -> Path:
    return Path("build/audits") / part


def note(audit: str, **counts: Any) -> None:
    """Add what one test of an audit saw: numbers are added up over all tests."""
    folder = folder_of(os.environ.get("CONFIDE_AUDIT", "alone"))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{audit}-{os.getpid()}.jsonl").open("a") as stream:
        stream.write(json.dumps(counts) + "\n")


def totals(part: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(int))
    for path in sorted(folder_of(part).glob("*.jsonl")):
        audit = path.stem.rpartition("-")[0]
        for line in path.read_text().splitlines():
            for name, value in json.loads(line).items():
                found[audit][name] += value
    return {audit: dict(counts) for audit, counts in found.items()}
