"""Synthetic data and microdata: choices, steps, shares, seeds."""

from tests.laboratory.mutation import Mutant

_SELECTION, _CURATOR, _SYNTHESIZING = "tests/synthesis/test_selection.py", "tests/release/test_curator.py", "tests/release/test_synthesizing.py"
_DESIGN = "tests/release/test_microdata_design.py"

MUTANTS = (
    Mutant("each pick has all of epsilon", "synthesis/selection.py", "return loss.epsilon / picks", "return loss.epsilon", f"{_SELECTION}::test_the_picks_of_one_selection_cost_no_more_than_is_paid"),
    Mutant("each pick has all of rho", "synthesis/selection.py", "square = 8 * loss.rho / picks", "square = 8 * loss.rho", f"{_SELECTION}::test_the_picks_of_one_selection_cost_no_more_than_is_paid"),
    Mutant("a choice of a table without the two", "synthesis/selection.py", "        mechanism = Exponential(self.epsilon, 2 * self.sensitivity)\n        chosen, _", "        mechanism = Exponential(self.epsilon, self.sensitivity)\n        chosen, _", _SELECTION),
    Mutant("a choice of queries without the two", "synthesis/selection.py", "        mechanism = Exponential(self.epsilon, 2 * self.sensitivity)\n        left", "        mechanism = Exponential(self.epsilon, self.sensitivity)\n        left", _SELECTION),
    Mutant("a chosen query is drawn again", "synthesis/selection.py", "            left[score] -= 1\n", "", _SELECTION),
    Mutant("tables of one step have all of its epsilon", "release/synthesis_steps.py", "mechanism = laplace(sensitivity.l1, loss.epsilon / parts)", "mechanism = laplace(sensitivity.l1, loss.epsilon)", _CURATOR),
    Mutant("tables of one step have all of its rho", "release/synthesis_steps.py", "mechanism = gaussian(sensitivity.l2_squared, loss.rho / parts)", "mechanism = gaussian(sensitivity.l2_squared, loss.rho)", _CURATOR),
    Mutant("one count moves by one row", "release/synthesis_steps.py", "return Sensitivity(rows, rows**2)", "return Sensitivity(1, 1)", _CURATOR),
    Mutant("a step that pays nothing", "release/synthesis_steps.py", "    if not (loss.epsilon if isinstance(loss, PureDP) else loss.rho):\n        raise ParameterError(NO_ROUND)\n", "", _SYNTHESIZING),
    Mutant("a seed that everybody knows", "release/curator.py", "return (source.uint64(1) >> np.uint64(1)).astype(np.int64)", "return np.zeros(1, dtype=np.int64)", f"{_SYNTHESIZING}::test_kernel_randomness_gives_a_seed_of_its_own_to_every_call"),
    Mutant("a seed from a key", "release/curator.py", "            self._seed, values = int(values[0]), values[1:]", "            self._seed, values = int(self._key[:8], 16), values[1:]", f"{_SYNTHESIZING}::test_the_seed_of_a_fit_is_drawn_and_has_nothing_to_do_with_the_data"),
    Mutant("all tables of a step with the noise of one", "release/curator.py", "mechanism = step_noise(self._loss(share), len(sets), self._tables)", "mechanism = step_noise(self._loss(share), 1, self._tables)", _CURATOR),
    Mutant("all queries of a step with the noise of one", "release/curator.py", "mechanism = step_noise(self._loss(share), len(picked), one_count(self._rows))", "mechanism = step_noise(self._loss(share), 1, one_count(self._rows))", _CURATOR),
    Mutant("a choice for units of one row", "release/curator.py", "mechanism = TopErrors(selection_epsilon(self._loss(share), count), self._rows)", "mechanism = TopErrors(selection_epsilon(self._loss(share), count), 1)", _CURATOR),
    Mutant("a choice of a table for units of one row", "release/curator.py", "mechanism = LargestError(selection_epsilon(self._loss(share), 1), self._rows)", "mechanism = LargestError(selection_epsilon(self._loss(share), 1), 1)", _CURATOR),
    Mutant("all marginals at the whole epsilon", "release/microdata_design.py", "mechanisms.append(laplace(measure.l1, amount * part / whole))", "mechanisms.append(laplace(measure.l1, amount))", _DESIGN),
    Mutant("all marginals at the whole rho", "release/microdata_design.py", "mechanisms.append(narrower(measure, amount * part / whole, FORECAST_CONFIDENCE))", "mechanisms.append(narrower(measure, amount, FORECAST_CONFIDENCE))", "tests/release/test_microdata.py::test_an_approximate_budget_takes_gaussian_noise_that_adds_up"),
)  # fmt: skip
