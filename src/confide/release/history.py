"""The workload of past questions: what analysts asked says what synthetic data should get right.

A question becomes the marginal of all columns that it speaks of. A short history is padded with marginals of columns
drawn at random, because it says little of the questions to come (Avent and Korolova, section 5.3.1). Everything is read
from the ledger's public lines: nothing private is touched, and nothing is spent.
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from confide.errors import ConfideError, ParameterError
from confide.query import bind
from confide.release.holdings import Holdings
from confide.release.synthesizing import table_of
from confide.release.workload_sql import columns_of
from confide.workload import Threshold, Workload, domain_of, padded

_PREFIX = "sql: "
_WIDEST = 4


def history(holdings: Holdings, table: str | None, pad: int, columns: Sequence[str] | None = None) -> Workload:
    """Marginals of the columns of every past question on a table, padded to `pad` of them; of `columns` if given."""
    if isinstance(pad, bool) or not isinstance(pad, int) or pad < 0:
        raise ParameterError(f"pad = {pad!r} is not a number of marginals; write 0 for none")
    own = table_of(holdings.policy, table)
    names = domain_of(own).names if columns is None else tuple(columns)
    parts: dict[Threshold, None] = {}
    for entry in holdings.ledger.entries():
        if entry.kind == "charge" and entry.body["purpose"].startswith(_PREFIX):
            asked = _columns(holdings, entry.body["purpose"][len(_PREFIX) :], own.name)
            kept = tuple(name for name in names if name in asked)[:_WIDEST]
            if kept:
                parts[Threshold(kept, len(kept))] = None
    found = Workload(tuple(parts))
    if not found.parts and not pad:
        raise ParameterError(f"nothing was asked of {own.name} yet; write confide.marginals(k=3), or pad with some")
    width = min(3, len(names)) if not parts else max(2, round(np.mean([len(part.columns) for part in parts])))
    # Public, and the same whenever it is asked again: the request that follows is then the same request.
    seed = int.from_bytes(sha256(repr((own.name, names, sorted(map(str, parts)), pad)).encode()).digest()[:8])
    generator = np.random.default_rng(seed)
    return padded(found, names, pad, width, width, generator=generator)


def _columns(holdings: Holdings, text: str, table: str) -> frozenset[str]:
    """The columns of a past question; none if it is of another table, or cannot be read any more."""
    try:
        question = bind(text, holdings.policy, holdings.engine)
    except ConfideError:
        return frozenset()
    return frozenset(columns_of(question)) if question.tables == (table,) else frozenset()
