"""How much memory there is."""

import os

import pytest

from confide.host.machine_memory import machine_bytes


def test_it_is_what_the_system_says(monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine_bytes()
    assert found is None or found > 2**26

    def silent(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", silent)
    assert machine_bytes() is None
