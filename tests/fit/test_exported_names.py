"""The public surface of the package is a list, and this test holds it."""

import confide.fit

EXPORTED = {
    *("CellDomain", "Group", "Marginal", "SparseGroup", "Subtotal", "TOTAL"),
    *("FitProblem", "MeasuredGroup", "Public"),
    *("METHODS", "Method", "adaptive", "fit", "maxfit", "nnls", "ols", "pinned", "reweighted", "sequential"),
    *("Certificate", "Fit", "LinearEstimate", "Screening", "error", "estimates", "screen"),
    *("Guarantee", "Price", "price"),
    *("Report", "Risk", "Sacrifice", "report"),
    *("RoundedFit", "round_controlled"),
}


def test_these_names_are_public() -> None:
    assert set(confide.fit.__all__) == EXPORTED
    assert all(hasattr(confide.fit, name) for name in confide.fit.__all__)
