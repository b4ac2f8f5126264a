"""Arrow tables as frames of the libraries people work with, which are not needed otherwise."""

from typing import TYPE_CHECKING

from confide.errors import ParameterError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_MISSING = "to_{0}() needs the package {0}: pip install 'confide[frames]'; to_arrow() works without it"


def as_polars(table: "pyarrow.Table") -> "polars.DataFrame":
    try:
        import polars  # noqa: PLC0415  optional
    except ImportError:
        raise ParameterError(_MISSING.format("polars")) from None
    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame)
    return frame


def as_pandas(table: "pyarrow.Table") -> "pandas.DataFrame":
    try:
        frame: pandas.DataFrame = table.to_pandas()
    except ImportError:
        raise ParameterError(_MISSING.format("pandas")) from None
    return frame
