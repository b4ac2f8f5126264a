"""Losses, budgets and the arithmetic of spending."""

from tests.laboratory.mutation import Mutant

_AMOUNT, _BUDGET, _CONVERSION = (f"tests/privacy/test_{name}.py" for name in ("amount", "budget", "conversion"))

MUTANTS = (
    Mutant("a charge is rounded down", "privacy/amount.py", "return -(-amount.numerator * QUANTA // amount.denominator)", "return amount.numerator * QUANTA // amount.denominator", _AMOUNT),
    Mutant("a cap is rounded up", "privacy/amount.py", "    return amount.numerator * QUANTA // amount.denominator\n\n\ndef from_quanta", "    return -(-amount.numerator * QUANTA // amount.denominator)\n\n\ndef from_quanta", _BUDGET),
    Mutant("an epsilon of nothing is an amount", "privacy/amount.py", "if exact <= 0:", "if exact < 0:", _AMOUNT),
    Mutant("true is an amount", "privacy/amount.py", "        case bool():\n            raise _refusal(value, name, \"it is a truth value, not a number\")\n", "", _AMOUNT),
    Mutant("an infinite epsilon is an amount", "privacy/amount.py", "            if not math.isfinite(number):\n                raise _refusal(value, name, \"it must be finite\")\n", "            if not math.isfinite(number):\n                return LARGEST\n", _AMOUNT),
    Mutant("pure loss costs half in rho", "privacy/conversion.py", "return epsilon * epsilon / 2", "return epsilon * epsilon / 4", _CONVERSION),
    Mutant("an exponential mechanism costs half in rho", "privacy/conversion.py", "return epsilon * epsilon / 8", "return epsilon * epsilon / 16", _CONVERSION),
    Mutant("rho is rounded up for an epsilon", "privacy/conversion.py", "max(0, to_quanta_down(rho * (1 - Fraction(1, 10**50))))", "max(0, to_quanta_up(rho * (1 + Fraction(1, 10**50))))", _CONVERSION),
    Mutant("the margin of a conversion is given away", "privacy/conversion.py", "exact + log_ratio - tail - margin", "exact + log_ratio - tail + exact / 50", _CONVERSION),
    Mutant("the logarithm of alpha is left out", "privacy/conversion.py", "return log_ratio, (log_inverse - log_order) / t,", "return log_ratio, log_inverse / (2 * t),", _CONVERSION),
    Mutant("the whole delta pays twice", "privacy/budget.py", "return ZCDP(rho_for(epsilon, self.delta / 2), _down(self.delta / 2))", "return ZCDP(rho_for(epsilon, self.delta), _down(self.delta / 2))", _BUDGET),
    Mutant("a loss is rounded down into its currency", "privacy/budget.py", "            return PureDP(_up(epsilon))\n        case PureDP(epsilon), ZCDP():", "            return PureDP(_down(epsilon))\n        case PureDP(epsilon), ZCDP():", _BUDGET),
    Mutant("an approximate loss pays no delta", "privacy/budget.py", "            return ZCDP(_up(rho_of_pure(epsilon)), _up(delta))", "            return ZCDP(_up(rho_of_pure(epsilon)))", _BUDGET),
    Mutant("delta does not add up", "privacy/budget.py", "return ZCDP(rho + more_rho, delta + more_delta)", "return ZCDP(rho + more_rho, max(delta, more_delta))", _BUDGET),
    Mutant("one of two amounts is enough to fit", "privacy/budget.py", "return all(amount <= most for amount, most in zip(amounts(add(total, loss)), amounts(cap), strict=True))", "return any(amount <= most for amount, most in zip(amounts(add(total, loss)), amounts(cap), strict=True))", _BUDGET),
    Mutant("a call that costs nothing is allowed", "privacy/budget.py", "        if not quanta_of(cost)[0]:\n            raise ParameterError(f\"epsilon = {show(epsilon)} is too small to ask anything with.\")\n", "", _BUDGET),
)  # fmt: skip
