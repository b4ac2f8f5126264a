"""Synthetic data and microdata: choices, steps, shares, seeds."""

from tests.laboratory.mutation import Mutant

MUTANTS = (
    Mutant("each pick has all of epsilon", "synthesis/selection.py", "return loss.epsilon / picks", "return loss.epsilon", "tests/synthesis/test_selection.py::test_the_picks_of_one_selection_cost_no_more_than_is_paid[3]"),
    Mutant("each pick has all of rho", "synthesis/selection.py", "square = 8 * loss.rho / picks", "square = 8 * loss.rho", "tests/synthesis/test_selection.py::test_the_picks_of_one_selection_cost_no_more_than_is_paid[3]"),
    Mutant("a seed that everybody knows", "release/curator.py", "return (source.uint64(1) >> np.uint64(1)).astype(np.int64)", "return np.zeros(1, dtype=np.int64)", "tests/release/test_synthesizing.py::test_kernel_randomness_gives_a_seed_of_its_own_to_every_call"),
    Mutant("a seed from a key", "release/curator.py", "            self._seed, values = int(values[0]), values[1:]", "            self._seed, values = int(self._key[:8], 16), values[1:]", "tests/release/test_synthesizing.py::test_the_seed_of_a_fit_is_drawn_and_has_nothing_to_do_with_the_data"),
    Mutant("all marginals at the whole rho", "release/microdata_design.py", "mechanisms.append(narrower(measure, amount * part / whole, FORECAST_CONFIDENCE))", "mechanisms.append(narrower(measure, amount, FORECAST_CONFIDENCE))", "tests/release/test_microdata.py::test_an_approximate_budget_takes_gaussian_noise_that_adds_up"),
)  # fmt: skip
