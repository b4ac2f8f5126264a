import math
from fractions import Fraction

import pytest

from confide.errors import ParameterError
from confide.mechanism.statistic import Setting, StatisticForecast, choose, inside
from confide.mechanism.tally import REACH


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": Fraction(0)}, "epsilon"),
        ({"epsilon": Fraction(-1)}, "epsilon"),
        ({"epsilon": 1.0}, "epsilon"),
        ({"confidence": 0}, "confidence"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"neighbours": "zcdp"}, "neighbours"),
        ({"rows": 0}, "rows"),
        ({"domain": (3, 2)}, "domain"),
        ({"domain": (0, 2**62)}, "domain"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(changed, message):
    parts = {"domain": (0, 9), "epsilon": Fraction(1), "confidence": 0.9, "neighbours": "add-remove", "rows": 1}
    with pytest.raises(ParameterError, match=message):
        Setting(**(parts | changed))


def test_what_follows_from_a_setting():
    setting = Setting(None, Fraction(1), 0.9, "replace-one", 4)
    assert setting.ends == (-REACH, REACH)
    assert setting.size < 2**63
    assert setting.row_epsilon == Fraction(1, 4)
    assert setting.loss.epsilon == 1
    assert setting.miss == pytest.approx(0.1)
    with pytest.raises(ParameterError, match="use svt"):
        setting.bound("pair", "svt")
    assert Setting((2, 5), Fraction(1), 0.9, "replace-one").bound("pair", "svt") == (2, 5)


def test_intervals_are_cut_to_the_domain():
    setting = Setting((0, 10), Fraction(1), 0.9, "add-remove")
    cut = inside(12, -3, 15, setting)
    assert (cut.interval.low, cut.estimate, cut.interval.high) == (0, 10, 10)
    assert cut.whole
    assert not inside(5, 4, 15, setting).whole


class _Plan:
    def __init__(self, name, half_width):
        self.name, self.forecast = name, StatisticForecast(half_width, "")


def _refuse():
    raise ParameterError("needs a bound")


def test_auto_takes_the_narrowest_that_is_allowed():
    makers = {"wide": lambda: _Plan("wide", 9), "narrow": lambda: _Plan("narrow", 2), "refused": _refuse}
    assert choose(makers, "auto").name == "narrow"
    assert choose(makers, "wide").name == "wide"
    with pytest.raises(ParameterError, match="bound"):
        choose(makers, "refused")
    with pytest.raises(ParameterError, match="there are auto, wide"):
        choose(makers, "unknown")
    with pytest.raises(ParameterError, match="bound"):
        choose({"refused": _refuse}, "auto")
