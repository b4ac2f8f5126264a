"""Files are written whole, or not at all, and never over others."""

from pathlib import Path

import pytest

from confide.cli.output import new_file


def test_a_new_file_is_written(tmp_path: Path) -> None:
    with new_file(tmp_path / "a", "advice") as stream:
        stream.write("ε")
    assert (tmp_path / "a").read_text(encoding="utf-8") == "ε"


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with (
        pytest.raises(FileExistsError, match="not overwritten; do this") as caught,
        new_file(tmp_path / "a", "do this"),
    ):
        raise AssertionError("not reached")
    assert caught.value.filename == str(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "mine"


def test_a_half_is_taken_away(tmp_path: Path) -> None:
    def interrupted_halfway() -> None:
        with new_file(tmp_path / "a", "advice") as stream:
            stream.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_halfway()
    assert not (tmp_path / "a").exists()
