import subprocess
import sys

import confide.mechanism

EXPORTED = {
    *("Additive", "KeyThreshold", "exact", "gaussian", "gaussian_key_threshold", "key_threshold", "laplace"),
    *("Assumes", "Interval", "Intervals", "Measurement", "ReleasedKeys"),
    *("DiscreteGaussian", "DiscreteLaplace", "Law", "NoNoise"),
    *("KernelRandomness", "Randomness", "TestRandomness", "bernoulli_exponential", "draw", "uniform_below"),
    *("combined_half_width", "deviation_intervals", "ratio_estimates", "ratio_intervals"),
    *("variance_estimates", "variance_intervals"),
}


def test_these_names_are_public():
    assert set(confide.mechanism.__all__) >= EXPORTED
    assert all(hasattr(confide.mechanism, name) for name in confide.mechanism.__all__)


def test_heavy_libraries_load_only_when_used():
    script = (
        "import sys, confide.mechanism; print([name for name in ('scipy', 'opendp', 'pandas') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
