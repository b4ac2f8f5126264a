"""Noise, thresholds, sparse vectors, smooth bounds."""

from tests.laboratory.mutation import Mutant

_ADDITIVE, _THRESHOLD = "tests/mechanism/test_additive.py", "tests/mechanism/test_threshold.py"

MUTANTS = (
    Mutant("laplace noise of half the scale", "mechanism/additive.py", "scale = Fraction(sensitivity) / Fraction(epsilon)", "scale = Fraction(sensitivity) / Fraction(epsilon) / 2", _ADDITIVE),
    Mutant("gaussian noise of half the variance", "mechanism/additive.py", "variance = Fraction(sensitivity_squared) / (2 * Fraction(rho))", "variance = Fraction(sensitivity_squared) / (4 * Fraction(rho))", _ADDITIVE),
    Mutant("a scale is rounded to nearest", "mechanism/additive.py", "    while Fraction(double) ** power < value:\n        double = math.nextafter(double, math.inf)\n", "", _ADDITIVE),
    Mutant("one draw of noise for all cells", "mechanism/additive.py", "noise = draw(self.law, exact.shape, randomness)", "noise = draw(self.law, 1, randomness)[0]", _ADDITIVE),
    Mutant("noise of its own source", "mechanism/additive.py", "noise = draw(self.law, exact.shape, randomness)", "noise = draw(self.law, exact.shape, type(randomness)(*([1] if not randomness.kernel else [])))", f"{_ADDITIVE} tests/conformance/test_mechanism.py"),
    Mutant("a smaller threshold for keys", "mechanism/threshold.py", "law.upper(1 - Fraction(chance)) + 2", "law.upper(1 - Fraction(chance)) + 1", _THRESHOLD),
    Mutant("all of delta for each key", "mechanism/threshold.py", "math.log1p(-float(delta)) / keys)", "math.log1p(-float(delta)))", _THRESHOLD),
    Mutant("noise for one key where a unit holds many", "mechanism/threshold.py", "law = laplace(keys, epsilon).law", "law = laplace(1, epsilon).law", _THRESHOLD),
    Mutant("keys are shown by their exact numbers", "mechanism/threshold.py", "places = np.flatnonzero(noised >= self.threshold)", "places = np.flatnonzero(units >= self.threshold)", _THRESHOLD),
    Mutant("shown keys have the usual interval", "mechanism/threshold.py", "lows = np.where(everything, 1, high)", "lows = added(self.values, -self.law.half_width(confidence))", _THRESHOLD),
    Mutant("a zero is drawn twice as often", "mechanism/handful.py", "both[~negative | (magnitudes != 0)]", "both", "tests/mechanism/test_handful.py"),
    Mutant("doubtful coins are not tossed", "mechanism/handful.py", "for place in np.flatnonzero((np.abs(excess) <= MARGIN) | (words < CERTAIN)):", "for place in ():", "tests/mechanism/test_handful.py"),
    Mutant("doubtful geometric draws are rounded", "mechanism/handful.py", "for place in np.flatnonzero((low != high) | (words < CERTAIN)):", "for place in ():", "tests/mechanism/test_handful.py"),
    Mutant("a gaussian that keeps every proposal", "mechanism/handful.py", "return proposed[_kept(rates, exact, randomness)]", "return proposed", "tests/mechanism/test_handful.py"),
    Mutant("low bits of noise are left out", "mechanism/handful.py", "magnitudes = ((magnitudes << bits) + within)[kept]", "magnitudes = (magnitudes << bits)[kept]", "tests/mechanism/test_handful.py"),
    Mutant("residuals without those of others", "mechanism/residual.py", "for others in _subsets(tuple(place for place in table if place not in entered)):", "for others in [()]:", "tests/mechanism/test_residual.py"),
    Mutant("residuals of one copy at a time", "mechanism/residual.py", "for entered in _subsets(own, least=1):", "for entered in [(place,) for place in own]:", "tests/mechanism/test_residual.py tests/release/test_join_neighbours.py"),
    Mutant("residuals that are not smooth", "mechanism/residual.py", "farthest = math.ceil(1.25 * degree / alpha) + 10", "farthest = 1", "tests/mechanism/test_residual.py tests/release/test_join_neighbours.py"),
    Mutant("elastic sensitivity without the product of both", "mechanism/elastic.py", "both = left * own + right * sensitivity + sensitivity * own", "both = left * own + right * sensitivity", "tests/mechanism/test_residual.py tests/mechanism tests/release/test_join_neighbours.py"),
    Mutant("elastic frequencies that do not grow", "mechanism/elastic.py", "else count + steps", "else count + 0 * steps", "tests/mechanism tests/release/test_join_neighbours.py"),
    Mutant("a unit changes a total by half", "mechanism/truncation.py", "return sensitivity(edge, self.owners) if self.change is None else self.change.released(edge)", "return -(-(sensitivity(edge, self.owners) if self.change is None else self.change.released(edge)) // 2)", "tests/mechanism/test_truncation.py tests/mechanism/test_join_audit.py tests/release/test_join_neighbours.py"),
    Mutant("all levels race for the whole budget", "mechanism/truncation.py", "laws = [(place, self._law(place, FIRST_HEAT / len(self.raced))) for place in self.raced]", "laws = [(place, self._law(place, FIRST_HEAT)) for place in self.raced]", "tests/mechanism/test_truncation.py tests/mechanism/test_join_audit.py"),
    Mutant("the walk costs nothing", "mechanism/truncation.py", "return laplace(self.levels.sensitivity(level), self.epsilon * (1 - self.levels.walk_share))", "return laplace(self.levels.sensitivity(level), self.epsilon)", "tests/mechanism/test_truncation.py tests/mechanism/test_join_audit.py"),
    Mutant("stars change for their centre alone", "mechanism/bounded_degree.py", "return (2 * self.leaves if self.unit.owned else 1 + self.leaves) * comb(level, self.leaves)", "return comb(level, self.leaves)", "tests/mechanism/test_bounded_degree.py"),
    Mutant("degrees change for the node alone", "mechanism/bounded_degree.py", "return 2 * cells * level if self.unit.owned else 1 + cells * level", "return 2 * cells", "tests/mechanism/test_bounded_degree.py"),
    Mutant("smooth noise that forgets to dilate", "mechanism/smooth_vector.py", "return SLIDE / (self.epsilon * ANSWER_SHARE - DILATE * self.size * (self.alpha + ROUNDING))", "return SLIDE / (self.epsilon * ANSWER_SHARE)", "tests/mechanism/test_smooth.py tests/mechanism/test_join_audit.py"),
    Mutant("smooth noise of half the scale", "mechanism/smooth.py", "return SLIDE / (self.epsilon * ANSWER_SHARE - DILATE * (self.alpha + ROUNDING))", "return SLIDE / (2 * self.epsilon)", "tests/mechanism/test_smooth.py"),
    Mutant("a spread of one side only", "mechanism/quantile_pair.py", "return max(p, steepness * (d - p)) + max(d - p, steepness * p)", "return max(p, steepness * (d - p), d - p, steepness * p)", "tests/mechanism/test_quantile_pair.py"),
    Mutant("a spread as if rows were only added", "mechanism/quantile_pair.py", "return (steepness + 1) * d", "return steepness * d", "tests/mechanism/test_quantile_pair.py"),
    Mutant("gaps of the domain weigh like one value", "mechanism/quantile_pair.py", "return starts[begins], np.add.reduceat(sizes, begins), exponents[begins]", "return starts[begins], np.minimum(np.add.reduceat(sizes, begins), 1), exponents[begins]", "tests/mechanism/test_quantile_pair.py"),
    Mutant("an accepted proposal without its coin", "mechanism/sampler.py", "return accepted, ~accepted & ~(small & (excess <= -FAST_MARGIN))", "return accepted, np.zeros_like(accepted)", "tests/mechanism/test_sampler.py"),
    Mutant("every proposal is accepted", "mechanism/sampler.py", "accepted = small & (excess >= 2 * FAST_MARGIN)", "accepted = small", "tests/mechanism/test_sampler.py tests/statistical/test_noise_laws.py"),
)  # fmt: skip
