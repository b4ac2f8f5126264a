"""Verdicts: what one unit moves, and what a bit costs."""

from tests.laboratory.mutation import Mutant

_MARGIN, _PRIVACY, _DECIDERS = (f"tests/trust/test_{name}.py" for name in ("margin", "privacy", "deciders"))
_NEIGHBOURS = f"{_PRIVACY}::test_no_neighbours_differ_by_more_than_the_loss"

MUTANTS = (
    Mutant("several groups at the price of one", "trust/facts.py", "return Steps(whole, epsilon) if facts.single else Steps(1, epsilon / whole)", "return Steps(whole, epsilon) if facts.single else Steps(1, epsilon)", _MARGIN),
    Mutant("a unit's rows in several groups for nothing", "trust/facts.py", "return Steps(max(1, abs(low), abs(high)), epsilon / facts.rows)", "return Steps(max(1, abs(low), abs(high)), epsilon)", f"{_MARGIN}::test_units_with_rows_in_several_groups_pay_row_by_row"),
    Mutant("a margin is rounded down", "trust/facts.py", "return -(-margin // self.size)", "return margin // self.size", f"{_PRIVACY}::test_steps_round_up_so_that_edges_stay_edges"),
    Mutant("a replaced row moves a sum by its size", "trust/facts.py", "return self.rows // 2 * (max(high, 0) - min(low, 0))", "return self.rows // 2 * max(abs(low), abs(high))", _MARGIN),
    Mutant("a verdict on a sum as if of one row", "trust/facts.py", "return self.rows * max(abs(low), abs(high))", "return max(abs(low), abs(high))", _MARGIN),
    Mutant("a quantile's margin moves by part of a row", "trust/margin.py", "size = max(p, d - p)", "size = min(p, d - p)", _MARGIN),
    Mutant("quantiles of several groups at the price of one", "trust/margin.py", "Steps(size, epsilon / facts.rows)", "Steps(size, epsilon)", _MARGIN),
    Mutant("the larger of two margins", "trust/margin.py", "return min(self.low_steps.of(above), self.high_steps.of(under))", "return max(self.low_steps.of(above), self.high_steps.of(under))", f"{_MARGIN}::test_a_margin_is_positive_exactly_inside"),
    Mutant("the best bit at twice its price", "trust/optimal.py", "return laplace(1, self.margin.epsilon).law", "return laplace(1, 2 * self.margin.epsilon).law", _NEIGHBOURS),
    Mutant("a cautious bit without its caution", "trust/optimal.py", "return self.law.upper(1 - CAUTION) if self.prefer == \"cautious\" else 0", "return 0", f"{_DECIDERS}::test_a_cautious_yes_is_wrong_as_rarely_as_it_says"),
    Mutant("a noised answer with half its noise", "trust/plug_in.py", "return laplace(self.sensitivity, self.epsilon).law", "return laplace(self.sensitivity, 2 * self.epsilon).law", _NEIGHBOURS),
    Mutant("a noised sum and count at epsilon each", "trust/plug_in.py", "return laplace(self.rows * self.reach, self.epsilon / 2).law, laplace(self.rows, self.epsilon / 2).law", "return laplace(self.rows * self.reach, self.epsilon).law, laplace(self.rows, self.epsilon).law", _NEIGHBOURS),
    Mutant("a mean about its middle with half the reach", "trust/plug_in.py", "max(centre - low, high - centre, 1), facts.rows, epsilon)", "max((high - centre) // 2, 1), facts.rows, epsilon)", _NEIGHBOURS),
    Mutant("graded scores without their sensitivity", "trust/exponential.py", "return self.epsilon * depth / self.sensitivity -", "return self.epsilon * depth -", _NEIGHBOURS),
    Mutant("a naive bit at twice its price", "trust/exponential.py", "return (self.epsilon if inside else -self.epsilon) / 2 - shift", "return (self.epsilon if inside else -self.epsilon) - shift", _NEIGHBOURS),
    Mutant("every truncation of a race at epsilon", "trust/race.py", "return laplace_law(self.rows * RESOLUTION, self.epsilon / len(self.edges))", "return laplace_law(self.rows * RESOLUTION, self.epsilon)", _NEIGHBOURS),
    Mutant("a race as if of one row", "trust/race.py", "return laplace_law(self.rows * RESOLUTION, self.epsilon / len(self.edges))", "return laplace_law(RESOLUTION, self.epsilon / len(self.edges))", _NEIGHBOURS),
    Mutant("a decider's race that ends below the largest value", "trust/race.py", "for step in range(1, max(1, (largest - 1).bit_length()) + 1))", "for step in range(1, max(1, (largest - 1).bit_length() - 1) + 1))", _DECIDERS),
    Mutant("a bound on the largest value for nothing", "trust/sparse.py", "return laplace_law(self.rows, self.epsilon / 9)", "return laplace_law(self.rows, self.epsilon)", _NEIGHBOURS),
    Mutant("a threshold and its queries at epsilon each", "trust/sparse.py", "return laplace_law(self.rows * RESOLUTION, self.epsilon / 3)", "return laplace_law(self.rows * RESOLUTION, self.epsilon)", _NEIGHBOURS),
    Mutant("a drawn quantile without the two", "trust/median.py", "2 * (max(p, d - p) if self.ties else d))", "(max(p, d - p) if self.ties else d))", _NEIGHBOURS),
    Mutant("a drawn quantile as if of one row", "trust/median.py", "return Exponential(self.epsilon / self.rows,", "return Exponential(self.epsilon,", _NEIGHBOURS),
    Mutant("a histogram at epsilon for each part", "trust/median.py", "return laplace(self.rows, self.epsilon / 2).law", "return laplace(self.rows, self.epsilon).law", _NEIGHBOURS),
    Mutant("a cut sum has noise for one", "trust/clip.py", "by_noise = PlugIn(moved, max(1, change), epsilon)", "by_noise = PlugIn(moved, 1, epsilon)", _PRIVACY),
    Mutant("rows beyond a cut in too small steps", "trust/clip.py", "steps = row_steps(facts, chosen.at.low, chosen.at.high, epsilon)", "steps = Steps(1, epsilon)", _PRIVACY),
    Mutant("a yes is always drawn", "trust/decider.py", "return likelier if log_odds >= 0 else ~likelier", "return np.ones_like(likelier) if log_odds >= 0 else ~likelier", f"{_DECIDERS}::test_sampling_agrees_with_the_formula"),
    Mutant("each query of a list has all of epsilon", "release/trusting.py", "return loss, loss.epsilon / questions", "return loss, loss.epsilon", "tests/release/test_trust.py::test_a_list_shares_epsilon"),
    Mutant("each query of a list has all of rho", "release/trusting.py", "return loss, root(2 * loss.rho / questions)", "return loss, root(2 * loss.rho)", "tests/release/test_trust.py::test_under_delta_a_call_costs_rho"),
    Mutant("private values are not cut for a verdict", "release/trust_question.py", "return Cell(\"total\", _cut(number, low, high), where), Cell(", "return Cell(\"total\", number, where), Cell(", "tests/release/test_trust.py::test_statements_read_what_a_tally_would_give"),
    Mutant("bounded rows of different filters are read together", "release/trust_question.py", "filtered = summary.where if summary.bound is not None else None", "filtered = None", "tests/release/test_trust.py::test_one_unit_moves_margins_by_what_is_paid_for"),
)  # fmt: skip
