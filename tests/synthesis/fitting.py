"""Fits that take no time, for tests of what is chosen and paid: neither depends on how well a table fits."""

import numpy as np
import pytest

from confide.synthesis import rap
from confide.synthesis.projection import TableFit
from confide.synthesis.relaxed import RelaxedTable


def uniform_table(sizes: tuple[int, ...]) -> RelaxedTable:
    """One row that holds every place alike: what is known before anything is measured."""
    return RelaxedTable(sizes, np.concatenate([np.full(size, 1 / size, np.float32) for size in sizes])[None])


def pretend_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fitted(sizes: tuple[int, ...], measured: object, total: float, rows: int, seed: int, *more: object) -> TableFit:
        watch = more[1]
        if callable(watch):
            watch(10, 1.0)
        return TableFit(uniform_table(sizes), 10, 1.0)

    monkeypatch.setattr(rap, "project", fitted)
