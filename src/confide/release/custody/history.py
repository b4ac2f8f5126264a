"""The workload of past questions: what analysts asked says what synthetic data should get right.

A question becomes the marginal of all columns that it speaks of. A short history is padded with marginals of columns
drawn at random, because it says little of the questions to come ([AventKorolova2023], section 5.3.1). Everything is
read from the ledger's public lines: nothing private is touched, and nothing is spent.
"""

import json
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from confide.errors import ParameterError
from confide.privacy.amount import shown_value, whole_number
from confide.privacy.identity import VERSION
from confide.privacy.limits import MOST_PADDED
from confide.privacy.public_randomness import public_generator
from confide.query.identity import spoken_of
from confide.release.arguments import private_table
from confide.release.holdings import Holdings
from confide.workload import Threshold, Workload, domain_of, padded

_WIDEST = 4


def history(holdings: Holdings, table: str | None, pad: int, columns: Sequence[str] | None = None) -> Workload:
    """Marginals of the columns of every past question on a table, padded to `pad` of them; of `columns` if given."""
    wanted = whole_number(pad)
    if wanted is None or not 0 <= wanted <= MOST_PADDED:
        raise ParameterError(
            f"pad = {shown_value(pad)} is not a number of marginals up to {MOST_PADDED:,}; write 0 for none"
        )
    own = private_table(holdings.policy, table)
    if columns is not None and (isinstance(columns, str) or not isinstance(columns, Sequence)):
        raise ParameterError(f"columns={shown_value(columns)} is not a list of columns, such as ['age', 'sex']")
    names = domain_of(own).names if columns is None else tuple(columns)
    strange = [name for name in names if not isinstance(name, str) or name not in own.columns]
    if strange:
        raise ParameterError(f"there is no column {shown_value(strange[0])} in {own.name}")
    parts: dict[Threshold, None] = {}
    for entry in holdings.ledger.entries():
        if entry.kind == "charge":
            asked = asked_columns(entry.body.get("request", ""), own.name)
            kept = tuple(name for name in names if name in asked)[:_WIDEST]
            if kept:
                parts[Threshold(kept, len(kept))] = None
    found = Workload(tuple(parts))
    if not found.parts and not wanted:
        raise ParameterError(f"nothing was asked of {own.name} yet; write confide.marginals(k=3), or pad with some")
    width = min(3, len(names)) if not parts else max(2, round(np.mean([len(part.columns) for part in parts])))
    # Public, and the same whenever it is asked again: the request that follows is then the same request.
    seed = int.from_bytes(sha256(repr((own.name, names, sorted(map(str, parts)), wanted)).encode()).digest()[:8])
    generator = public_generator(seed)
    return padded(found, names, wanted, width, width, generator=generator)


def asked_columns(request: str, table: str) -> frozenset[str]:
    """The columns that a past question on one table speaks of; none if it was another request, or of another table.

    The request is read as the ledger keeps it, in its canonical form: in whatever dialect it was asked, however long.
    """
    try:
        tag, version, kind, *parts = json.loads(request)
    except (ValueError, TypeError, RecursionError):
        return frozenset()
    if (tag, version, kind) != ("request", VERSION, "sql"):
        return frozenset()
    tables, columns = spoken_of(parts[0])
    return columns if tables == (table,) else frozenset()
