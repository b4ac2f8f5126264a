"""Small wrong changes of the source, each of which a named test must catch.

python -m tests.laboratory.mutation            all of them; prints what caught each
python -m tests.laboratory.mutation NAME ...   some of them
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


@dataclass(frozen=True)
class Mutant:
    """In one file of the package, one piece of text put in the place of another; and the test that fails then."""

    name: str
    file: str
    old: str
    new: str
    caught_by: str

    @property
    def path(self) -> Path:
        return SOURCE / "confide" / self.file

    def applied(self) -> str:
        """The file as the mutant has it; what is replaced must be there, and once."""
        text = self.path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: the text to change occurs {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Catch:
    """Whether a test failed, as it should, and which; its last lines."""

    caught: bool
    words: str
    test: str = ""


def try_mutant(mutant: Mutant, seconds: float = 300.0) -> Catch:
    """Run a mutant's test on a copy of the source that has the change. Errors of collection catch nothing."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        (copy / "confide" / mutant.file).write_text(mutant.applied())
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            *("-p", "no:xdist", "-p", "tests.laboratory.unshrunk"),
            "-m",
            "not audit",
            *mutant.caught_by.split(),
        ]
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return Catch(False, f"its test takes more than {seconds:g} s")
    lines = done.stdout.splitlines()
    failed = next((line.removeprefix("FAILED ").split(" - ")[0] for line in lines if line.startswith("FAILED ")), "")
    return Catch(done.returncode == 1 and bool(failed), "\n".join(lines[-12:]), failed)


def main() -> int:
    from tests.laboratory.mutants import MUTANTS  # noqa: PLC0415  the list is long

    wanted = set(sys.argv[1:])
    survived = 0
    for mutant in MUTANTS:
        if wanted and mutant.name not in wanted:
            continue
        catch = try_mutant(mutant)
        survived += not catch.caught
        print(f"{'caught  ' if catch.caught else 'SURVIVED'}  {mutant.name}: {catch.test}", flush=True)
        if not catch.caught:
            print(catch.words, flush=True)
    return min(survived, 1)


if __name__ == "__main__":
    sys.exit(main())
