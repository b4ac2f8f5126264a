"""Large sets of counts as data: marginals, thresholds, counts in SQL; drawn, drifted, answered in blocks."""

from confide.workload.asked import AskedTable, LinearWorkload, bound_linear
from confide.workload.counting import CellRun, Tables, counting_answer, threshold_blocks, workload_blocks
from confide.workload.domain import Binned, Domain, Listed, domain_of
from confide.workload.features import Interest, draw, drifted, geometric, padded, uniform, zipf
from confide.workload.future import FutureError, future_error, present_errors
from confide.workload.ordered import Ordered
from confide.workload.places import places_of
from confide.workload.tables import ExactTables, SparseCounts, tables_of
from confide.workload.workload import (
    BoundWorkload,
    Counting,
    Every,
    Marks,
    Sql,
    Threshold,
    Workload,
    from_sql,
    marginals,
    prefixes,
    ranges,
    thresholds,
)

__all__ = [
    "AskedTable",
    "Binned",
    "BoundWorkload",
    "CellRun",
    "Counting",
    "Domain",
    "Every",
    "ExactTables",
    "FutureError",
    "Interest",
    "LinearWorkload",
    "Listed",
    "Marks",
    "Ordered",
    "SparseCounts",
    "Sql",
    "Tables",
    "Threshold",
    "Workload",
    "bound_linear",
    "counting_answer",
    "domain_of",
    "draw",
    "drifted",
    "from_sql",
    "future_error",
    "geometric",
    "marginals",
    "padded",
    "places_of",
    "prefixes",
    "present_errors",
    "ranges",
    "tables_of",
    "threshold_blocks",
    "thresholds",
    "uniform",
    "workload_blocks",
    "zipf",
]
