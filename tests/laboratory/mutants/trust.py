"""Verdicts: what one unit moves, and what a bit costs."""

from tests.laboratory.mutation import Mutant

MUTANTS = (
    Mutant("a unit's rows in several groups for nothing", "trust/facts.py", "return Steps(max(1, abs(low), abs(high)), epsilon / facts.rows)", "return Steps(max(1, abs(low), abs(high)), epsilon)", "tests/trust/test_margin.py::test_units_with_rows_in_several_groups_pay_row_by_row[mean]"),
    Mutant("a margin is rounded down", "trust/facts.py", "return -(-margin // self.size)", "return margin // self.size", "tests/trust/test_privacy.py::test_steps_round_up_so_that_edges_stay_edges"),
    Mutant("the larger of two margins", "trust/margin.py", "return min(self.low_steps.of(above), self.high_steps.of(under))", "return max(self.low_steps.of(above), self.high_steps.of(under))", "tests/trust/test_margin.py::test_a_margin_is_positive_exactly_inside[mean-tau0]"),
    Mutant("the best bit at twice its price", "trust/optimal.py", "return laplace(1, self.margin.epsilon).law", "return laplace(1, 2 * self.margin.epsilon).law", "tests/trust/test_privacy.py::test_no_neighbours_differ_by_more_than_the_loss[count-optimal]"),
    Mutant("a cautious bit without its caution", "trust/optimal.py", "return self.law.upper(1 - CAUTION) if self.prefer == \"cautious\" else 0", "return 0", "tests/trust/test_deciders.py::test_a_cautious_yes_is_wrong_as_rarely_as_it_says[count-optimal]"),
    Mutant("a noised answer with half its noise", "trust/plug_in.py", "return laplace(self.sensitivity, self.epsilon).law", "return laplace(self.sensitivity, 2 * self.epsilon).law", "tests/trust/test_privacy.py::test_no_neighbours_differ_by_more_than_the_loss[count-laplace]"),
    Mutant("a noised sum and count at epsilon each", "trust/plug_in.py", "return laplace(self.rows * self.reach, self.epsilon / 2).law, laplace(self.rows, self.epsilon / 2).law", "return laplace(self.rows * self.reach, self.epsilon).law, laplace(self.rows, self.epsilon).law", "tests/trust/test_privacy.py::test_no_neighbours_differ_by_more_than_the_loss[mean-laplace]"),
    Mutant("a mean about its middle with half the reach", "trust/plug_in.py", "max(centre - low, high - centre, 1), facts.rows, epsilon)", "max((high - centre) // 2, 1), facts.rows, epsilon)", "tests/trust/test_privacy.py::test_no_neighbours_differ_by_more_than_the_loss[mean-laplace]"),
    Mutant("graded scores without their sensitivity", "trust/exponential.py", "return self.epsilon * depth / self.sensitivity -", "return self.epsilon * depth -", "tests/trust/test_privacy.py::test_no_neighbours_differ_by_more_than_the_loss[sum-exponential]"),
    Mutant("a drawn quantile without the two", "trust/median.py", "2 * (max(p, d - p) if self.ties else d))", "(max(p, d - p) if self.ties else d))", "tests/trust/test_privacy.py::test_no_neighbours_differ_by_more_than_the_loss[median-tie-aware]"),
    Mutant("a yes is always drawn", "trust/decider.py", "return likelier if log_odds >= 0 else ~likelier", "return np.ones_like(likelier) if log_odds >= 0 else ~likelier", "tests/trust/test_deciders.py::test_sampling_agrees_with_the_formula[count-exponential]"),
    Mutant("each query of a list has all of epsilon", "release/trusting.py", "return loss, loss.epsilon / questions", "return loss, loss.epsilon", "tests/release/test_trust.py::test_a_list_shares_epsilon"),
    Mutant("each query of a list has all of rho", "release/trusting.py", "return loss, root(2 * loss.rho / questions)", "return loss, root(2 * loss.rho)", "tests/release/test_trust.py::test_under_delta_a_call_costs_rho"),
    Mutant("private values are not cut for a verdict", "release/trust_question.py", "return Cell(\"total\", _cut(number, low, high), where), Cell(", "return Cell(\"total\", number, where), Cell(", "tests/release/test_trust.py::test_statements_read_what_a_tally_would_give"),
)  # fmt: skip
