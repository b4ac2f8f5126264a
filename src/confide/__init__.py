"""Confide answers questions about private data, and tells you how far to trust each answer.

people = confide.open("people.yaml")
people.plan("SELECT region, COUNT(*) AS n FROM person GROUP BY region", epsilon=0.5)
people.sql("SELECT region, COUNT(*) AS n FROM person GROUP BY region", epsilon=0.5)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from confide.version import VERSION

if TYPE_CHECKING:
    from confide.policy import Policy
    from confide.release import Answer, Plan, Session
    from confide.release.custody.examination import Examination
    from confide.release.microdata.microdata import Microdata
    from confide.release.opening import check_policy as check
    from confide.release.opening import open_session as open  # noqa: A004
    from confide.release.summary.plan import SummaryPlan
    from confide.release.summary.summary import TableSummary
    from confide.release.synthetic.related_tables import SyntheticTables, load_synthetic_tables
    from confide.release.synthetic.synthetic import Synthetic, load_synthetic
    from confide.release.verdict.plan import TrustPlan
    from confide.release.verdict.verdict import Verdict, Verdicts
    from confide.workload import marginals, prefixes, ranges, thresholds

__version__ = VERSION
__all__ = [
    "Answer",
    "Examination",
    "Microdata",
    "Plan",
    "Policy",
    "Session",
    "SummaryPlan",
    "Synthetic",
    "SyntheticTables",
    "TableSummary",
    "TrustPlan",
    "Verdict",
    "Verdicts",
    "__version__",
    "check",
    "errors",
    "load_synthetic",
    "load_synthetic_tables",
    "marginals",
    "open",
    "prefixes",
    "ranges",
    "testing",
    "thresholds",
    "workload",
]

# Found when first used, so that `import confide` costs milliseconds.
_PLACES = {
    "Answer": ("confide.release.answer.answer", "Answer"),
    "Examination": ("confide.release.custody.examination", "Examination"),
    "Microdata": ("confide.release.microdata.microdata", "Microdata"),
    "Plan": ("confide.release.sql.forecast", "Plan"),
    "Policy": ("confide.policy", "Policy"),
    "Session": ("confide.release.session", "Session"),
    "check": ("confide.release.opening", "check_policy"),
    "open": ("confide.release.opening", "open_session"),
    "SummaryPlan": ("confide.release.summary.plan", "SummaryPlan"),
    "TableSummary": ("confide.release.summary.summary", "TableSummary"),
    "Synthetic": ("confide.release.synthetic.synthetic", "Synthetic"),
    "SyntheticTables": ("confide.release.synthetic.related_tables", "SyntheticTables"),
    "TrustPlan": ("confide.release.verdict.plan", "TrustPlan"),
    "Verdict": ("confide.release.verdict.verdict", "Verdict"),
    "Verdicts": ("confide.release.verdict.verdict", "Verdicts"),
    "load_synthetic": ("confide.release.synthetic.synthetic", "load_synthetic"),
    "load_synthetic_tables": ("confide.release.synthetic.related_tables", "load_synthetic_tables"),
    "marginals": ("confide.workload", "marginals"),
    "prefixes": ("confide.workload", "prefixes"),
    "ranges": ("confide.workload", "ranges"),
    "thresholds": ("confide.workload", "thresholds"),
    "workload": ("confide.workload", None),
    "errors": ("confide.errors", None),
    "testing": ("confide.testing", None),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"confide has no {name}; it has {', '.join(__all__)}")
    module, attribute = _PLACES[name]
    found = import_module(module)
    return found if attribute is None else getattr(found, attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
