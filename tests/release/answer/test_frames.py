"""Frames of libraries that may not be there."""

import sys

import pyarrow as pa
import pytest

from confide.errors import ParameterError
from confide.release.answer.frames import as_pandas, as_polars

TABLE = pa.table({"a": [1, 2], "b": ["x", None]})


def test_tables_become_frames() -> None:
    assert as_polars(TABLE).rows() == [(1, "x"), (2, None)]
    assert as_pandas(TABLE)["a"].tolist() == [1, 2]


@pytest.mark.parametrize(("name", "turn"), [("polars", as_polars), ("pandas", as_pandas)])
def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, name: str, turn: object) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ParameterError, match=rf"needs the package {name}.*confide\[frames\]"):
        turn(TABLE)  # type: ignore[operator]
