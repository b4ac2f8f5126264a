"""The public surface of the package is a list, and this test holds it."""

import confide.fit

EXPORTED = {
    *("Domain", "Group", "Marginal", "Sparse", "Subtotal", "TOTAL"),
    *("Measured", "Problem", "Public"),
    *("METHODS", "Method", "adaptive", "fit", "maxfit", "nnls", "ols", "pinned", "reweighted", "sequential"),
    *("Certificate", "Estimate", "Fit", "Screening", "error", "estimates", "screen"),
    *("Guarantee", "Price", "price"),
    *("Report", "Risk", "Sacrifice", "report"),
    *("Rounded", "round_controlled"),
}


def test_these_names_are_public() -> None:
    assert set(confide.fit.__all__) == EXPORTED
    assert all(hasattr(confide.fit, name) for name in confide.fit.__all__)
