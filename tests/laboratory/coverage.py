"""How often what an answer says is true, on data made to hurt: every kind of answer, every decider, with and without
somebody who picks what to look at.

python -m tests.laboratory.coverage             run the cells that have no outcome yet, on two cores; print the table
python -m tests.laboratory.coverage --write     the same, and put the table into docs/audits.md
python -m tests.laboratory.coverage NAME ...    only cells whose name holds one of these words

A cell is one question on one data set at one ε. Its rows are read once; noise is drawn anew in every run, by the code
that an analyst's call goes through, without a ledger. Outcomes are kept under build/coverage, by the state of the
source, so what was stopped goes on where it stopped. Seeds are fixed; how many runs a slow cell has is the machine's.
"""

import hashlib
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from scipy.stats import binom

from confide.errors import ConfideError
from confide.privacy.charge import Charge
from confide.release import Session
from confide.release.holdings import Holdings
from confide.release.request import Asked

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "audits.md"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"
LEVEL: Final = 1e-7
"""The chance that one number of a sound cell is called false, whatever its data are."""
RUNS: Final = 1_000
SECONDS: Final = 1.5
"""A cell whose runs take longer has fewer of them, but no fewer than LEAST."""
LEAST: Final = 60
ROUNDING: Final = 1e-9
"""Of stated chances, which are doubles."""


@dataclass(frozen=True)
class Seen:
    """One number of one run. `miss` is 1 or 0, or of rows that were picked the share that misses.

    `flat`: an interval without width, which looks certain.
    """

    kind: str
    key: str
    miss: float
    half: float = math.nan
    flat: bool = False
    allowed: float | None = None
    """How often it may miss, where that is not the cell's."""
    assumed: bool = False
    """Whether the answer says that it holds only for dense data, which these are not: shown, and not judged."""


@dataclass(frozen=True)
class Cell:
    """A question on one data set. `look` is what one run sees; a number may miss with a chance of `allowed`."""

    name: str
    data: str
    opened: Callable[[], Session]
    look: Callable[[Session], Iterable[Seen]]
    allowed: float
    forecasts: Callable[[Session], Mapping[str, float]] = field(default=lambda _: {})
    flat: bool = True
    """Whether an interval may have no width."""


@dataclass(frozen=True)
class Outcome:
    """What was seen of one kind of number in one cell: its worst key, and the chance to see that or worse."""

    cell: str
    kind: str
    data: str
    runs: int
    allowed: float
    missed: float
    chance: float
    keys: int
    flat: int = 0
    ratio: float | None = None
    """The median half-width, in that of the plan."""
    assumed: bool = False

    @property
    def held(self) -> bool:
        fits = self.ratio is None or 0.5 <= self.ratio <= 2
        return not self.flat and fits and (self.assumed or self.chance >= LEVEL)

    @property
    def wrong(self) -> str:
        said = (
            []
            if self.assumed or self.chance >= LEVEL
            else [f"misses {self.missed:.3f} where {self.allowed:.3f} is allowed"]
        )
        said += [f"{self.flat} of {self.runs} intervals have no width"] if self.flat else []
        said += [f"{self.ratio:.2f} times as wide as planned"] if self.ratio and not 0.5 <= self.ratio <= 2 else []
        return "; ".join(said)


# --- runs without a ledger --------------------------------------------------------------------------------------------


class Remembered:
    """An engine that reads what does not depend on noise once."""

    def __init__(self, engine: Any) -> None:
        self._engine, self._known = engine, {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def evaluate(self, summary: Any, charge: Any, secret: bytes, keep: Any = None, windows: Any = None) -> Any:
        if keep is not None:  # which keys are kept is noise
            return self._engine.evaluate(summary, charge, secret, keep, windows)
        return self._once(("evaluate", summary), lambda: self._engine.evaluate(summary, charge, secret))

    def tabulate(self, tabulation: Any, charge: Any, secret: bytes) -> Any:
        return self._once(("tabulate", tabulation), lambda: self._engine.tabulate(tabulation, charge, secret))

    def occupied(self, tabulation: Any, charge: Any, secret: bytes) -> Any:
        return self._once(("occupied", tabulation), lambda: self._engine.occupied(tabulation, charge, secret))

    def inquire(self, inquiry: Any, charge: Any) -> Any:
        return self._once(("inquire", inquiry), lambda: self._engine.inquire(inquiry, charge))

    def _once(self, key: Any, read: Callable[[], Any]) -> Any:
        try:
            hash(key)
        except TypeError:
            key = repr(key)
        if key not in self._known:
            self._known[key] = read()
        return self._known[key]


class Rehearsed(Holdings):
    """Holdings that price and measure as ever, and neither charge nor keep: the same call again is another draw."""

    last: Any = None
    """The request that was made last, and its price."""

    def ask(self, request: Any, account: Any = "auto") -> Any:
        object.__setattr__(self, "last", (request, request.price(self.policy.budget)))
        return Asked(self.measured(*self.last), stored=False)

    def measured(self, request: Any, priced: Any) -> Any:
        charge = Charge(1, "rehearsed", priced.loss, request.purpose, self.analyst, "no ledger")
        return request.decode(priced.measure(self, charge))


@dataclass
class Again:
    """A call that is made once, and then measured again and again at the price it had."""

    call: Callable[[Session], Any]
    request: Any = None
    holdings: Any = None

    def __call__(self, session: Session) -> Any:
        holdings: Any = session._holdings
        if self.holdings is not holdings:
            self.call(session)
            self.request, self.holdings = holdings.last, holdings
        return holdings.measured(*self.request)


def rehearsed(session: Session) -> Session:
    """A session with test noise whose calls can be made any number of times."""
    own = session._holdings
    assert not own.randomness.kernel
    session._holdings = Rehearsed(own.policy, Remembered(own.engine), own.ledger, own.randomness, own.analyst)  # type: ignore[arg-type]
    return session


# --- one cell ---------------------------------------------------------------------------------------------------------


def run(cell: Cell, runs: int = RUNS, seconds: float = SECONDS) -> list[Outcome]:
    """All runs of a cell, and what they show."""
    misses: dict[tuple[str, str], list[float]] = defaultdict(list)
    halves: dict[str, list[float]] = defaultdict(list)
    flat: dict[str, int] = defaultdict(int)
    allowed: dict[tuple[str, str], float] = {}
    assumed: dict[str, bool] = {}
    begun, done = time.monotonic(), 0
    with rehearsed(cell.opened()) as session:
        planned = cell.forecasts(session)
        while done < runs and (done < min(LEAST, runs) or time.monotonic() - begun < seconds):
            for seen in cell.look(session):
                misses[seen.kind, seen.key].append(seen.miss)
                halves[seen.kind].append(seen.half)
                flat[seen.kind] += seen.flat and not cell.flat
                assumed[seen.kind] = seen.assumed
                allowed[seen.kind, seen.key] = (
                    cell.allowed if seen.allowed is None else min(1.0, seen.allowed + ROUNDING)
                )
            done += 1
    found = []
    for kind in dict.fromkeys(kind for kind, _ in misses):
        each = [place for place in misses if place[0] == kind]
        chances = [chance_of(misses[place], allowed[place]) for place in each]
        where = each[chances.index(min(chances))]
        worst, most = misses[where], allowed[where]
        ratio = sorted(halves[kind])[len(halves[kind]) // 2] / planned[kind] if planned.get(kind) else None
        found.append(
            Outcome(cell.name, kind, cell.data, len(worst), most, sum(worst) / len(worst),
                    min(1.0, len(each) * min(chances)), len(each), flat[kind], ratio, assumed[kind])
        )  # fmt: skip
    return found


def chance_of(misses: Sequence[float], allowed: float) -> float:
    """At most the chance of so many misses, or more, where each has a mean of at most `allowed`.

    Exact for numbers that hold or miss; for shares Chernoff's bound, which holds for all that lies in [0, 1].
    """
    count, total = len(misses), sum(misses)
    if all(miss in (0, 1) for miss in misses):
        return float(binom.sf(round(total) - 1, count, allowed))
    mean = total / count
    if mean <= allowed or allowed >= 1:
        return 1.0
    return math.exp(-count * _divergence(min(mean, 1.0), max(allowed, 1e-300)))


def _divergence(mean: float, allowed: float) -> float:
    parts = [] if mean == 0 else [mean * math.log(mean / allowed)]
    parts += [] if mean == 1 else [(1 - mean) * math.log((1 - mean) / (1 - allowed))]
    return sum(parts)


# --- all cells --------------------------------------------------------------------------------------------------------


def outcomes(cells: Sequence[Cell], folder: Path | None = None, workers: int = 2) -> list[Outcome]:
    """Of all cells, from what is kept or by running them; without workers here, one by one."""
    folder = folder or ROOT / "build" / "coverage" / _state()
    folder.mkdir(parents=True, exist_ok=True)
    missing = [cell.name for cell in cells if not _kept(folder, cell.name).exists()]
    if missing and not workers:
        for name in missing:
            _run_one(name, folder)
    elif missing:
        with ProcessPoolExecutor(max_workers=workers) as pool:
            begun = time.monotonic()
            for place, _ in enumerate(pool.map(_run_one, missing, [folder] * len(missing)), 1):
                if place % 25 == 0 or place == len(missing):
                    print(
                        f"{place} of {len(missing)} cells, {(time.monotonic() - begun) / 60:.1f} min", file=sys.stderr
                    )
    return [Outcome(**facts) for cell in cells for facts in json.loads(_kept(folder, cell.name).read_text("utf-8"))]


def _run_one(name: str, folder: Path) -> None:
    from tests.laboratory.coverage_cells import cells  # noqa: PLC0415  cells are made of what stands here

    cell = next(cell for cell in cells() if cell.name == name)
    try:
        seen = run(cell)
    except ConfideError as error:  # a cell that is not answered is one that fails
        seen = [Outcome(name, f"not answered: {type(error).__name__}", cell.data, 0, cell.allowed, 1.0, 0.0, 1)]
    found = json.dumps([asdict(outcome) for outcome in seen])
    made = _kept(folder, name).with_suffix(".new")
    made.write_text(found, "utf-8")
    made.rename(_kept(folder, name))


def _kept(folder: Path, name: str) -> Path:
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.json"


def _state() -> str:
    """The source that is measured, and what it is measured with."""
    paths = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "tests" / "laboratory").glob("coverage*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def table(found: Sequence[Outcome]) -> str:
    """One line for each kind: its worst number, over all data and ε."""
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        kinds[outcome.kind].append(outcome)
    head = ("kind of answer", "cells", "runs", "nominal", "worst seen", "on", "chance", "half-width / plan", "outcome")
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for kind in sorted(kinds):
        own = kinds[kind]
        worst = min(own, key=lambda outcome: (outcome.held, outcome.chance, -outcome.missed))
        ratios = [outcome.ratio for outcome in own if outcome.ratio is not None]
        bad = [outcome for outcome in own if not outcome.held]
        said = "assumed" if all(outcome.assumed for outcome in own) else "holds"
        said = f"**{len(bad)} of {len(own)} fail**: {worst.wrong}" if bad else said
        told = [kind, str(len(own)), f"{_intervals(own):,}", f"{1 - worst.allowed:.3g}", f"{1 - worst.missed:.3f}"]
        told += [worst.data, f"{worst.chance:.1g}", f"{min(ratios):.2f}-{max(ratios):.2f}" if ratios else "", said]
        lines.append(f"| {' | '.join(told)} |")
    numbers = sum(outcome.keys for outcome in found)
    lines.append(
        f"\n{len(found):,} cells of {numbers:,} numbers, {_intervals(found):,} intervals and verdicts. A sound number "
        f"is called false with a chance of at most {LEVEL:g}, so a table that is all sound is with one of at most "
        f"{numbers * LEVEL:.1g}."
    )
    return "\n".join(lines)


def _intervals(found: Sequence[Outcome]) -> int:
    return sum(outcome.runs * outcome.keys for outcome in found)


def write(text: str) -> None:
    page = PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", "utf-8")


def main() -> int:
    from tests.laboratory.coverage_cells import cells  # noqa: PLC0415

    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    chosen = [cell for cell in cells() if not words or any(word in cell.name for word in words)]
    found = outcomes(chosen)
    print(table(found))
    bad = [outcome for outcome in found if not outcome.held]
    for outcome in bad:
        print(f"{outcome.cell} | {outcome.kind}: {outcome.wrong} ({outcome.runs} runs, chance {outcome.chance:.1g})")
    if "--write" in sys.argv:
        write(table(found))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
