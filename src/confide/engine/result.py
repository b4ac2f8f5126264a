"""What a statement returns, whichever database ran it."""

from typing import Any

from numpy.typing import NDArray

Rows = list[tuple[Any, ...]]
Columns = dict[str, NDArray[Any]]
