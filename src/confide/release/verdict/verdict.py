"""What an analyst holds after a decision: yes or no, for one query or for many, and how far to trust that."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any, Final, Literal, overload

from confide.host.notebook import framed, grid, lines, title
from confide.release.answer.digits import number
from confide.release.answer.rendering import print_table, printable
from confide.release.cost import Cost

_FORMAT = 1
_WATERMARK = "TEST NOISE: this verdict protects nobody"
_HEAD: Final[tuple[tuple[str, Literal["left", "right"]], ...]] = (
    ("question", "left"),
    ("trusted", "left"),
    ("synthetic", "right"),
    ("trusted between", "right"),
    ("decider", "left"),
    ("effective from", "right"),
)


@dataclass(frozen=True, repr=False)
class Verdict:
    """Whether the synthetic answer of one query may be used: one private bit, and public facts about it.

    `interval` is where the private answer would have to lie, ends excluded. `threshold` is the least τ at which the
    decider is effective: right with probability 0.95 where the answers are equal, and where they are 2τ apart.
    `wrong_yes` bounds the probability of a yes where no is right, if what it `assumes` holds; None without a bound.
    """

    trusted: bool
    query: str
    key: dict[str, Any]
    synthetic_answer: float
    interval: tuple[float, float]
    within: str
    mechanism: str
    why: str
    threshold: float
    effective: bool
    wrong_yes: float | None
    prefer: str
    assumes: str
    epsilon: float
    cost: Cost
    """Of the whole call, however many verdicts it has; `epsilon` is what this one used of it."""
    test_noise: bool = False
    stored: bool = field(default=False, compare=False)
    """Whether it was kept before the call that gave it, which cost nothing then."""

    def __bool__(self) -> bool:
        return self.trusted

    def to_dict(self) -> dict[str, Any]:
        facts = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "stored"}
        facts["interval"] = list(self.interval)
        facts["threshold"] = None if self.threshold == inf else self.threshold
        facts["cost"] = self.cost.to_dict()
        if not self.test_noise:
            del facts["test_noise"]
        return facts

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, default=str)

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> "Verdict":
        threshold = inf if facts["threshold"] is None else facts["threshold"]
        cost, interval = Cost.from_dict(facts["cost"]), tuple(facts["interval"])
        return cls(**{**facts, "threshold": threshold, "cost": cost, "interval": interval})

    @property
    def lines(self) -> list[str]:
        """What it says, line by line."""
        low, high = (number(end) for end in self.interval)
        answer = number(self.synthetic_answer)
        said = (
            f"yes: the synthetic answer {answer} may be used; the private one seems to lie between {low} and {high}"
            if self.trusted
            else f"no: the synthetic answer {answer} should not be used; the private one seems not to lie between "
            f"{low} and {high}"
        )
        chance = "has no bound" if self.wrong_yes is None else f"has probability {self.wrong_yes:.3g} at most"
        lines = [said, f"decided by {self.mechanism} ({self.why}) · cost {self.cost} · a wrong yes {chance}"]
        lines.append(self._effect())
        if self.assumes:
            lines.append(f"assumes that {self.assumes}")
        if self.test_noise:
            lines.append(_WATERMARK)
        return lines

    def _effect(self) -> str:
        if self.threshold == inf:
            return (
                f"{self.mechanism} is effective at no distance at this ε: at each it is wrong in more than 1 of 20 "
                "cases where the answers are equal, or where they are twice as far apart"
            )
        beginning = f"effective from ±{number(self.threshold)} on"
        if self.effective:
            return f"{beginning}: such a verdict is wrong in 1 of 20 cases at most, unless the gap is near its limit"
        return f"{beginning}, so at this distance and this ε the verdict says little; spend more, or allow more"

    def __str__(self) -> str:
        return "\n".join([*([_key(self.key)] if self.key else []), *self.lines])

    def __repr__(self) -> str:
        return f"<Verdict: {'yes' if self.trusted else 'no'} to {number(self.synthetic_answer)}; cost {self.cost}>"

    def _repr_html_(self) -> str:
        first, *more = str(self).splitlines()
        return framed(title(first), lines(more))


@dataclass(frozen=True, repr=False)
class Verdicts(Sequence[Verdict]):
    """Several verdicts of one call: of a list of queries, or one for each key of a GROUP BY."""

    verdicts: tuple[Verdict, ...]
    cost: Cost
    notes: tuple[str, ...] = field(default=())
    stored: bool = field(default=False, compare=False)

    def marked(self, stored: bool) -> "Verdicts":
        """The same verdicts, as a call found them."""
        if stored == self.stored:
            return self
        return replace(self, verdicts=tuple(replace(one, stored=stored) for one in self.verdicts), stored=stored)

    @property
    def trusted(self) -> tuple[bool, ...]:
        return tuple(verdict.trusted for verdict in self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    @overload
    def __getitem__(self, place: int) -> Verdict: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Verdict]: ...
    def __getitem__(self, place: int | slice) -> Verdict | Sequence[Verdict]:
        return self.verdicts[place]

    def to_dicts(self) -> list[dict[str, Any]]:
        return [verdict.to_dict() for verdict in self.verdicts]

    def to_json(self) -> str:
        facts = {"verdicts": self.to_dicts(), "cost": self.cost.to_dict(), "notes": list(self.notes)}
        return json.dumps(facts, ensure_ascii=False, default=str)

    def to_bytes(self) -> bytes:
        """A canonical text, kept in the ledger and read back byte for byte."""
        return json.dumps(
            {"format": _FORMAT, **json.loads(self.to_json())}, ensure_ascii=False, sort_keys=True, separators=(",", ":")
        ).encode()

    @classmethod
    def from_bytes(cls, stored: bytes) -> "Verdicts":
        facts = json.loads(stored)
        verdicts = tuple(Verdict.from_dict(part) for part in facts["verdicts"])
        return cls(verdicts, Cost.from_dict(facts["cost"]), tuple(facts["notes"]))

    def table(self) -> Any:
        """A rich table, one line for each verdict."""
        from rich.table import Table  # noqa: PLC0415  loaded when printed

        table = Table(show_edge=False, pad_edge=False, header_style="bold")
        for name, justify in _HEAD:
            table.add_column(name, justify=justify)
        for one in self.verdicts:
            table.add_row(*self._row(one))
        return table

    def _row(self, one: Verdict) -> tuple[str, ...]:
        return (
            _key(one.key) or printable(" ".join(one.query.split())),
            "yes" if one.trusted else "no",
            number(one.synthetic_answer),
            f"{number(one.interval[0])} … {number(one.interval[1])}",
            one.mechanism,
            f"±{number(one.threshold)}",
        )

    @property
    def lines(self) -> list[str]:
        """What stands below the table."""
        lines = [f"cost {self.cost} for {len(self)} verdict{'s' * (len(self) != 1)}", *self.notes]
        lines += dict.fromkeys(f"assumes that {one.assumes}" for one in self.verdicts if one.assumes)
        if any(verdict.test_noise for verdict in self.verdicts):
            lines.append(_WATERMARK)
        return lines

    def __str__(self) -> str:
        return print_table(self.table()) + "\n".join(self.lines)

    def __repr__(self) -> str:
        return f"<Verdicts: yes to {sum(self.trusted)} of {len(self)}; cost {self.cost}>"

    def _repr_html_(self) -> str:
        rows = [self._row(verdict) for verdict in self.verdicts]
        return framed(grid([name for name, _ in _HEAD], rows, words=(0, 1, 4)), lines(self.lines))


def _key(key: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {'NULL' if value is None else printable(str(value))}" for name, value in key.items())
