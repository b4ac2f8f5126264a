"""How the parts of a workload are spelled in the identity of a request; see `privacy.identity`.

Columns are told by their names and bins: their facts are the policy's, which are part of every key.
"""

from typing import Final

from confide.privacy.identity import Spelling
from confide.workload.asked import AskedTable, LinearWorkload
from confide.workload.domain import Binned, Domain, Listed
from confide.workload.workload import BoundWorkload, Counting, Marks

WORKLOAD_SPELLING: Final[Spelling] = {
    Listed: ("listed", lambda n: (n.name,)),
    Binned: ("binned", lambda n: (n.name, n.first, n.width)),
    Domain: ("domain", lambda n: (n.table, n.attributes)),
    Marks: ("threshold", lambda n: (n.columns, n.need)),
    Counting: ("count", lambda n: (n.columns, n.places, n.need)),
    BoundWorkload: ("workload", lambda n: (n.domain, n.thresholds, n.counts)),
    AskedTable: ("asked", lambda n: (n.columns, n.kinds)),
    LinearWorkload: ("linear workload", lambda n: (n.domain, n.tables)),
}

WORKLOAD_LEFT_OUT: Final[dict[type, tuple[str, ...]]] = {Listed: ("column",), Binned: ("column",)}
"""Fields that are not spelled: a column is told by its name."""
