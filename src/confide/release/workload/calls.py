"""The calls of a session that answer workloads."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from confide.errors import ParameterError
from confide.host.progress import Tell
from confide.release.arguments import confidence_level, exact_epsilon
from confide.release.guard import callers, listening
from confide.release.holdings import Holdings

if TYPE_CHECKING:
    from confide.release.workload.answers import WorkloadAnswers
    from confide.release.workload.plan import WorkloadPlan
    from confide.workload import Workload


class WorkloadCalls:
    """Part of `Session`."""

    _holdings: Holdings

    def plan_answer(
        self,
        workload: "Workload",
        epsilon: object = None,
        confidence: float = 0.95,
        *,
        within: object = None,
        strategy: str = "auto",
        goal: str = "typical",
        table: str | None = None,
        bins: Mapping[str, object] | None = None,
        account: str = "auto",
    ) -> "WorkloadPlan":
        """What answering a workload would measure and cost, and the exact half-widths of its answers. Free.

        Give `epsilon`, or `within`, the half-width that no interval is to pass, for the least ε that gives it.
        """
        from confide.release.workload.plan import plan_answer  # noqa: PLC0415  loaded when used
        from confide.release.workload.request import WorkloadOptions  # noqa: PLC0415

        if (epsilon is None) == (within is None):
            raise ParameterError("give epsilon, what the whole call may cost, or within, the width to reach; not both")
        options = WorkloadOptions(workload, strategy, table, bins, confidence_level(confidence), account, goal)
        return plan_answer(self._holdings, options, None if epsilon is None else exact_epsilon(epsilon), within)

    def answer(
        self,
        workload: "Workload",
        epsilon: object,
        confidence: float = 0.95,
        *,
        strategy: str = "auto",
        goal: str = "typical",
        table: str | None = None,
        bins: Mapping[str, object] | None = None,
        account: str = "auto",
        progress: Tell | None = None,
    ) -> "WorkloadAnswers":
        """All answers of a workload of marginals, prefixes and ranges from one measurement; `epsilon` is its cost.

        `strategy` names what is measured; `auto` takes the smallest exact forecast. `goal` is what is made least: the
        mean variance of answers, or with `worst` the widest interval. The same workload again is free.
        """
        from confide.release.workload.request import WorkloadOptions, answer_workload  # noqa: PLC0415  loaded when used

        options = WorkloadOptions(workload, strategy, table, bins, confidence_level(confidence), account, goal)
        callers(progress)  # refuses what is no function
        with listening(progress):
            return answer_workload(self._holdings, options, exact_epsilon(epsilon))
