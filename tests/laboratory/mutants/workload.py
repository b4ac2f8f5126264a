"""What is measured for workloads of counts: norms of strategies, shares of blocks, widths of sums."""

from tests.laboratory.mutation import Mutant

MUTANTS = (
    Mutant("a row that is replaced only comes or goes", "workload/strategy/block.py", "            one = max(one, 2 * (one - norms.least_inner))\n", "            pass\n", "tests/workload/strategy/test_lines.py::test_no_unit_moves_a_product_further_than_its_norms[True]"),
    Mutant("rows of a unit add up in squares", "workload/strategy/block.py", "return self.rows**2 * one", "return self.rows * one", "tests/workload/strategy/test_lines.py::test_several_rows_of_a_unit_move_no_further_than_their_number_times_one"),
    Mutant("a replaced row pays once in L1", "workload/strategy/block.py", "(2 if self.replaced else 1)", "1", "tests/workload/strategy/test_lines.py::test_no_unit_moves_a_product_further_than_its_norms[True]"),
    Mutant("no inner product of a product is negative", "workload/strategy/block.py", "        least = squares * min(ratios)\n", "        least = Fraction(0)\n", "tests/workload/strategy/test_lines.py::test_no_unit_moves_a_product_further_than_its_norms[True]"),
    Mutant("norms of a product add up", "workload/strategy/block.py", "squares = math.prod((own.l2_squared for own in norms), start=Fraction(1))", "squares = sum((own.l2_squared for own in norms), start=Fraction(0))", "tests/workload/strategy/test_lines.py::test_no_unit_moves_a_product_further_than_its_norms[False]"),
    Mutant("a tree pays for its widest level alone", "workload/strategy/hierarchy.py", "squares = sum(weight * weight for weight in self.weights)", "squares = max(weight * weight for weight in self.weights)", "tests/workload/strategy/test_lines.py::test_what_a_strategy_says_is_what_its_integers_say[5]"),
    Mutant("helmert rows of one size", "workload/strategy/helmert.py", "return steps * (steps + 1)", "return steps * steps", "tests/workload/strategy/test_lines.py::test_helmert_rows_cost_every_cell_the_same"),
    Mutant("counts in parts that wrap", "workload/strategy/block.py", "return 62 - self.norms.largest.bit_length() - cells.bit_length()", "return 44", "tests/workload/strategy/test_lines.py::test_a_block_is_exact_where_doubles_and_64_bits_are_not"),
    Mutant("parts of a convolution that doubles do not hold", "workload/strategy/toeplitz.py", "_PART: Final = 11\n", "_PART: Final = 40\n", "tests/workload/strategy/test_lines.py::test_convolutions_are_exact_at_the_largest_counts"),
    Mutant("shares add up to twice the cost", "workload/strategy/design.py", "np.floor(weights / weights.sum() * (QUANTA - len(blocks)))", "np.floor(weights / weights.sum() * 2 * QUANTA)", "tests/workload/strategy/test_design.py::test_shares_never_add_up_to_more_than_the_cost[gaussian]"),
    Mutant("every block has all of rho", "release/workload/noise.py", "cost.rho * share)", "cost.rho)", "tests/release/workload/test_noise.py"),
    Mutant("every block has all of epsilon", "release/workload/noise.py", "epsilon * share)", "epsilon)", "tests/release/workload/test_noise.py"),
    Mutant("noise for what is not made fine", "release/workload/noise.py", "made = gaussian(change.l2_squared(norms) * fine**2, ", "made = gaussian(change.l2_squared(norms), ", "tests/release/workload/test_noise.py"),
    Mutant("all rows of a block have the same noise", "release/workload/noise.py", "draw(DiscreteGaussian(self.law.variance * factor), ", "draw(self.law, ", "tests/release/workload/test_noise.py::test_every_row_has_the_variance_of_its_factor"),
    Mutant("gaussian sums without room for lumps", "mechanism/interval/many.py", "widths.append(z * math.sqrt(1 + extra) + step * math.sqrt(extra))", "widths.append(z)", "tests/mechanism/interval/test_many.py::test_gaussian_sums_are_covered"),
    Mutant("laplace sums as if they were normal", "mechanism/interval/many.py", "return 2 * _tail(z) + _curvature(round(z, 6)) * ratio", "return 2 * _tail(z)", "tests/mechanism/interval/test_many.py::test_laplace_sums_are_covered"),
    Mutant("a count is narrower in SQL", "release/workload/measured_design.py", "scaled = coefficients * fine", "scaled = coefficients", "tests/release/workload/test_answer.py::test_a_count_in_sql_is_the_same_as_in_the_table"),
    Mutant("one key for every strategy", "release/workload/request.py", "parts = (self.table.name, self.linear, self.strategy, self.epsilon)", "parts = (self.table.name, self.linear, self.epsilon)", "tests/release/workload/test_answer.py::test_another_strategy_is_another_request"),
)  # fmt: skip
