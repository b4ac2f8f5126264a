"""Questions and what becomes of them, from the text files in `cases`.

An accepted question is followed by indented lines that say what it is bound to: its columns, its keys with their sizes,
its measures with L1 and L2² sensitivity. A refused one is followed by `refused:` and words its message must hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from confide.errors import QueryError
from confide.query import Question, bind
from confide.query.grouping import key_size
from tests.query.samples import CATALOG, POLICIES

CASES = Path(__file__).parent / "cases"


@dataclass
class Case:
    place: str
    policy: str
    text: str
    expected: dict[str, str] = field(default_factory=dict)


def read_cases() -> Iterator[Case]:
    for path in sorted(CASES.glob("*.txt")):
        case: Case | None = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith(" "):
                assert case is not None
                word, _, rest = (part.strip() for part in line.partition(":"))
                if word.endswith(("columns", "keys", "measures", "refused", "statistics", "tables", "limit")):
                    case.expected[word] = rest
                else:
                    case.text += "\n" + line.strip()
            else:
                if case is not None:
                    yield case
                policy, _, text = line.partition(": ")
                case = Case(f"{path.stem}:{number}", policy, text)
        if case is not None:
            yield case


def described(question: Question) -> dict[str, str]:
    threshold = [question.threshold] if question.threshold is not None else []
    return {
        "columns": " ".join(column.name for column in question.columns),
        "keys": " ".join(f"{key.name}({key_size(key) or '?'})" for key in question.keys),
        "measures": ", ".join(f"{m.label} {m.l1}/{m.l2_squared}" for m in (*question.measures, *threshold)),
        "statistics": ", ".join(f"{s.kind} {s.q} {s.rows} {s.neighbours}" for s in question.statistics),
        "tables": " ".join(question.tables),
        "limit": f"{question.limit} {question.offset}",
    }


_ALL = list(read_cases())


@pytest.mark.parametrize("case", _ALL, ids=[case.place for case in _ALL])
def test_case(case: Case) -> None:
    if "refused" in case.expected:
        with pytest.raises(QueryError) as caught:
            bind(case.text, POLICIES[case.policy], CATALOG)
        assert case.expected["refused"] in str(caught.value)
        return
    found = described(bind(case.text, POLICIES[case.policy], CATALOG))
    assert case.expected, "a case says what it expects"
    assert {word: found[word] for word in case.expected} == case.expected


def test_there_are_many_cases_of_both_kinds() -> None:
    refused = sum("refused" in case.expected for case in _ALL)
    assert refused > 150
    assert len(_ALL) - refused > 100
