"""Losses, budgets and the arithmetic of spending."""

from tests.laboratory.mutation import Mutant

MUTANTS = (
    Mutant("a charge is rounded down", "privacy/amount.py", "return -(-amount.numerator * QUANTA // amount.denominator)", "return amount.numerator * QUANTA // amount.denominator", "tests/privacy/test_amount.py::test_rounds_up_by_less_than_a_quantum"),
    Mutant("a cap is rounded up", "privacy/amount.py", "    return amount.numerator * QUANTA // amount.denominator\n\n\ndef from_quanta", "    return -(-amount.numerator * QUANTA // amount.denominator)\n\n\ndef from_quanta", "tests/privacy/test_budget.py::test_an_epsilon_that_costs_nothing_is_refused"),
    Mutant("true is an amount", "privacy/amount.py", "        case bool():\n            raise _refusal(value, name, \"it is a truth value, not a number\")\n", "", "tests/privacy/test_amount.py::test_refuses_with_the_name_and_the_range[bool-6]"),
    Mutant("an infinite epsilon is an amount", "privacy/amount.py", "            if not math.isfinite(number):\n                raise _refusal(value, name, \"it must be finite\")\n", "            if not math.isfinite(number):\n                return LARGEST\n", "tests/privacy/test_amount.py::test_refuses_with_the_name_and_the_range[float-8]"),
    Mutant("the margin of a conversion is given away", "privacy/conversion.py", "exact + log_ratio - tail - margin", "exact + log_ratio - tail + exact / 50", "tests/privacy/test_conversion.py::test_the_rho_found_meets_delta_and_nothing_larger_does"),
    Mutant("the logarithm of alpha is left out", "privacy/conversion.py", "return log_ratio, (log_inverse - log_order) / t,", "return log_ratio, log_inverse / (2 * t),", "tests/privacy/test_conversion.py::test_agrees_with_dp_accounting"),
    Mutant("the whole delta pays twice", "privacy/budget.py", "return ZCDP(rho_for(epsilon, self.delta / 2), _down(self.delta / 2), pure)", "return ZCDP(rho_for(epsilon, self.delta), _down(self.delta / 2), pure)", "tests/privacy/test_budget.py::test_half_of_delta_converts_and_half_is_spent"),
    Mutant("a loss is rounded down into its currency", "privacy/budget.py", "            return PureDP(_up(epsilon))\n        case PureDP(epsilon), ZCDP(_, _, None):", "            return PureDP(_down(epsilon))\n        case PureDP(epsilon), ZCDP(_, _, None):", "tests/privacy/test_budget.py::test_prices_round_up_to_whole_quanta"),
    Mutant("an approximate loss pays no delta", "privacy/budget.py", "            return ZCDP(_up(rho_of_pure(epsilon)), _up(delta))", "            return ZCDP(_up(rho_of_pure(epsilon)))", "tests/privacy/test_budget.py::test_every_loss_has_a_price_in_rho"),
    Mutant("delta does not add up", "privacy/budget.py", "return ZCDP(rho + more_rho, delta + more_delta, both)", "return ZCDP(rho + more_rho, max(delta, more_delta), both)", "tests/privacy/test_budget.py::test_totals_add_fit_and_leave"),
    Mutant("one of two amounts is enough to fit", "privacy/budget.py", "return pure or (together.rho <= cap.rho and together.delta <= cap.delta)", "return pure or together.rho <= cap.rho or together.delta <= cap.delta", "tests/privacy/test_budget.py::test_a_call_at_the_whole_budget_fits_whatever_the_fraction"),
    Mutant("a call that costs nothing is allowed", "privacy/budget.py", "        if not quanta_of(cost)[0]:\n            raise ParameterError(f\"epsilon = {show(epsilon)} is too small to ask anything with.\")\n", "", "tests/privacy/test_budget.py::test_an_epsilon_that_costs_nothing_is_refused"),
    Mutant("pure loss costs half in rho", "privacy/conversion.py", "return epsilon * epsilon / 2", "return epsilon * epsilon / 4", "tests/privacy/test_conversion.py::test_exact_steps"),
    Mutant("an exponential mechanism costs half in rho", "privacy/conversion.py", "return epsilon * epsilon / 8", "return epsilon * epsilon / 16", "tests/privacy/test_conversion.py::test_exact_steps"),
)  # fmt: skip
