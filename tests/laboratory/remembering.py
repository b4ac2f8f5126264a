"""Half-widths of workloads follow from public facts alone: what was computed once is remembered in a process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from confide.release.workload import measured_design

_MOST = 2_000
_KNOWN: dict[Any, Any] = {}


@contextmanager
def widths_remembered() -> Iterator[None]:
    """For Laplace noise a table is computed for every measurement, also where only the noise is another one."""
    plain = measured_design.widths

    def widths(second: Any, fourth: Any, noises: Any, confidence: float) -> Any:
        key = (second.tobytes(), fourth.tobytes(), second.shape, tuple(noise.law for noise in noises), confidence)
        if key not in _KNOWN:
            if len(_KNOWN) >= _MOST:
                _KNOWN.clear()
            _KNOWN[key] = plain(second, fourth, noises, confidence)
        return _KNOWN[key]

    with patch.object(measured_design, "widths", widths):
        yield
