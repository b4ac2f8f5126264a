"""Quotes of text files: closed or not, wherever the file is cut into pieces."""

import csv
import gzip
import io
from pathlib import Path
from random import Random

import pytest

from confide.engine.duckdb import text_file
from confide.engine.duckdb.text_file import quotes_are_closed


@pytest.mark.parametrize(
    ("content", "closed"),
    [
        ("a,b\n,\n", True),
        ('a,b\r\n1,"2\r\n"\r\n', True),
        ('a\n"1"', True),
        ('a\nb"c\n', True),
        ('a\n"1\n2\n', False),
        ('a\n"1', False),
        ('a\n"1""\n2\n', False),
    ],
)
def test_quotes_are_closed_or_not(content: str, closed: bool, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(content.encode())
    assert quotes_are_closed(str(tmp_path / "p.csv"), ",") is closed
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(content.encode()))
    assert quotes_are_closed(str(tmp_path / "p.csv.gz"), ",") is closed


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert not quotes_are_closed(str(tmp_path / "gone.csv"), ",")


@pytest.mark.parametrize("piece", [1, 2, 3, 50])
def test_it_does_not_matter_where_a_file_is_cut(piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "_PIECE", piece)
    rng, place = Random(piece), tmp_path / "p.csv"
    for end in ("\n", "\r\n") * 30:
        written = io.StringIO(newline="")
        fields = ["".join(rng.choices(['"', "\n", ";", "a", "\r\n", '""'], k=rng.randint(0, 5))) for _ in range(24)]
        csv.writer(written, delimiter=";", lineterminator=end).writerows(zip(*[iter(fields)] * 3, strict=True))
        place.write_bytes(written.getvalue().encode())
        assert quotes_are_closed(str(place), ";")
        place.write_bytes(f'{written.getvalue()}1;"2;3{end}4;5;6{end}'.encode())
        assert not quotes_are_closed(str(place), ";")
