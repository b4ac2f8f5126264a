"""Very many marginals: measured some at a time, kept in few bytes, and the same answers as from every number whole."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import confide
import confide.testing
from confide.errors import EngineError, ParameterError
from confide.mechanism import DiscreteGaussian, TestRandomness
from confide.mechanism.noise.gaussians import gaussians
from confide.privacy.limits import LONGEST_ANSWER
from confide.privacy.loss import ZCDP
from confide.release.block_noise import BlockNoise, noises_for
from confide.release.workload import compact_design, compact_measure
from confide.release.workload.compact_design import (
    CompactDesign,
    compact_bits,
    compact_size,
    packed,
    residual_block,
    runs,
    steps,
    unpacked,
    variances,
    within_room,
)
from confide.release.workload.compact_measure import noised
from confide.release.workload.measured_design import MeasuredDesign
from confide.workload.asked import AskedTable
from confide.workload.strategy.block import UnitChange
from confide.workload.strategy.design import designs

NAMES = tuple("abcde")
SIZES = (3, 2, 4, 1, 3)
RULES: dict[str, Any] = {
    "budget": {"epsilon": 100, "delta": 1e-9},
    "unit": "row",
    "tables": {
        "t": {
            "size": 400,
            "columns": {name: {"values": list(range(size))} for name, size in zip(NAMES, SIZES, strict=True)},
        }
    },
}
_random = np.random.default_rng(4)
DATA = {name: _random.integers(0, size, 400) for name, size in zip(NAMES, SIZES, strict=True)}
WANTED = confide.marginals(k=3)


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is kept compactly, in several chunks, and rows are read, not tables."""
    monkeypatch.setattr(compact_design, "MANY_BLOCKS", 0)
    monkeypatch.setattr(compact_design, "CHUNK", 20)
    monkeypatch.setattr(compact_measure, "MOST_CELLS", 8)


def opened(seed: int = 1) -> Any:
    return confide.testing.open(RULES, data={"t": DATA}, seed=seed)


def truth(columns: tuple[int, ...]) -> np.ndarray:
    counts = np.zeros([SIZES[column] for column in columns])
    np.add.at(counts, tuple(DATA[NAMES[column]] for column in columns), 1)
    return counts


@pytest.mark.parametrize("whole", [[0], [-1, 0, 1], [-128, 127], [128], [-129], [2**40, -(2**55)], [2**62, -(2**62)]])
def test_whole_numbers_are_packed_without_loss(whole: list[int]) -> None:
    own = np.array(whole, dtype=np.int64)
    np.testing.assert_array_equal(unpacked(packed(own)), own)
    np.testing.assert_array_equal(unpacked(memoryview(packed(own))), own)


def test_a_step_is_at_most_a_share_of_a_deviation() -> None:
    own = np.exp(np.random.default_rng(1).uniform(0, 60, 2_000))
    for bits in (11, 5, 0, -3):
        found = steps(own, bits)
        assert (np.ldexp(1.0, found) <= np.maximum(np.sqrt(own) / 2.0**bits, 1)).all()
        assert (np.ldexp(1.0, found) * 2.001 > np.sqrt(own) / 2.0**bits).all()


@pytest.mark.parametrize("room", [10**9, 60, 38])
def test_numbers_come_back_within_half_a_step_however_few_bits_are_kept(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Also where two bits are left out one after the other, which must be as if they were left out together."""
    monkeypatch.setattr(compact_design, "CHUNK", 12)
    sizes, sets = (4, 5), ((0,), (1,), (0, 1))
    blocks = [residual_block(sizes, own) for own in sets]
    laws = (Fraction(10**9), Fraction(5 * 10**7), Fraction(3, 2) * 10**8)
    exact = [np.random.default_rng(place).integers(-(10**7), 10**7, block.rows) for place, block in enumerate(blocks)]
    parts = list(runs(sizes, sets))
    assert len(parts) == 2
    spread = [variances([blocks[p] for p in part], [laws[p] for p in part]) for part in parts]
    chunks = [
        packed(np.concatenate([exact[p] for p in part]) >> steps(own, 8))
        for part, own in zip(parts, spread, strict=True)
    ]
    kept, bits = within_room(
        chunks, 8, lambda part, left: steps(spread[part], left) - steps(spread[part], left + 1), room
    )
    assert (bits < 8) == (room < 10**9)
    assert sum(map(len, kept)) <= room
    design = CompactDesign(sizes, sets, laws, (0, 1, 2), kept, bits)
    for place, block in enumerate(blocks):
        off = np.abs(design.values(place) - exact[place])
        assert (off <= np.sqrt(variances([block], [laws[place]])) * 2.0 ** -(bits + 1)).all()


def test_what_is_left_out_is_in_every_interval() -> None:
    """Numbers at the far ends of their steps: no answer is off by more than `_cut` says."""
    sizes, table = (4, 3), AskedTable((0, 1), ("each", "each"))
    (design,) = designs(sizes, (table,), "residual", "gaussian")
    noises = noises_for(design, UnitChange(1, False), ZCDP(Fraction(1, 2)))
    coarse = 2.0**-4
    random = np.random.default_rng(3)
    worst = 0.0
    for _ in range(300):
        values = []
        for block, noise in zip(design.blocks, noises, strict=True):
            factors = np.ones(block.rows) if block.factors is None else block.factors
            off = np.sqrt(noise.variance * factors) * coarse
            values.append(off * random.choice([-1.0, 1.0], block.rows))
        found = MeasuredDesign(sizes, "residual", design.blocks, noises, tuple(values), design.sources, coarse)
        plain = MeasuredDesign(sizes, "residual", design.blocks, noises, tuple(values), design.sources)
        own, without = (each.widths_alone(table, design.sources[0], 0.95) for each in (found, plain))
        share = np.abs(found.table(table, design.sources[0])) / (own - without)
        assert share.max() <= 1 + 1e-9
        worst = max(worst, float(share.max()))
        query = random.integers(0, 3, sizes).astype(float)
        one, two = found.count((0, 1), query, 0.95), plain.count((0, 1), query, 0.95)
        assert one is not None
        assert two is not None
        assert abs(one[0]) <= (one[2] - one[0]) - (two[2] - two[0]) + 1e-9
    assert worst > 0.4  # the bound is of the right size


@pytest.mark.usefixtures("_small")
def test_answers_hold_and_agree_with_each_other() -> None:
    """60 measurements of 4 cells; more than 12 misses of one at 5 % happen with chance 2·10⁻⁴. Seeds are fixed."""
    misses = np.zeros(4)
    for seed in range(60):
        found = opened(seed).answer(WANTED, epsilon=1)
        assert isinstance(found.measured, CompactDesign)
        tables = {own.asked.columns: own for own in found.tables()}
        own = tables[0, 1, 2]
        for place, cell in enumerate([(0, 0, 0), (1, 1, 3), (2, 0, 1), (2, 1, 2)]):
            exact = truth((0, 1, 2))[cell]
            misses[place] += not own.low[cell] <= exact <= own.high[cell]
    assert misses.max() <= 12
    shared = [tables[columns].values.sum(axis=2) for columns in ((0, 1, 2), (0, 1, 4))]
    assert shared[0] == pytest.approx(shared[1], abs=1e-6)
    assert found.sql("SELECT COUNT(*) AS n FROM t WHERE a = 1 AND c < 2").to_dicts()[0]["n"] == pytest.approx(
        float(tables[0, 1, 2].values[1, :, :2].sum()), abs=1e-6
    )
    assert found.marginal("c", "a", "b").asked.columns == (0, 1, 2)


@pytest.mark.usefixtures("_small")
def test_with_next_to_no_noise_every_count_comes_out() -> None:
    """Rows that are read and counted here, and Helmert rows of many sets at once, in chunks."""
    rules = RULES | {"budget": {"epsilon": 10**6, "delta": 1e-9}}
    session = confide.testing.open(rules, data={"t": DATA}, seed=1)
    found = session.answer(WANTED, epsilon=10**5, strategy="residual")
    assert isinstance(found.measured, CompactDesign)
    for own in found.tables():
        assert own.values == pytest.approx(truth(own.asked.columns), abs=0.2)


@pytest.mark.usefixtures("_small")
def test_the_same_again_is_free_and_byte_for_byte(tmp_path: Any) -> None:
    session = opened()
    first = session.answer(WANTED, epsilon=1)
    again = session.answer(WANTED, epsilon=1)
    assert (first.stored, again.stored) == (False, True)
    assert first.to_bytes() == again.to_bytes()
    assert again.to_arrow().equals(first.to_arrow())
    first.to_parquet(tmp_path / "all.parquet")
    written = pq.read_table(tmp_path / "all.parquet")
    assert written.select(first.to_arrow().column_names).equals(first.to_arrow())


@pytest.mark.usefixtures("_small")
def test_the_plan_says_how_wide_it_is_with_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened()
    plan = session.plan_answer(WANTED, epsilon=1)
    found = session.answer(WANTED, epsilon=1)
    wide = max(float((own.high - own.low).max()) / 2 for own in found.tables())
    assert wide <= plan.worst + 1
    monkeypatch.setattr(compact_design, "MANY_BLOCKS", 10**9)
    whole = opened().plan_answer(WANTED, epsilon=1)
    assert whole.worst < plan.worst < whole.worst * 1.01


@pytest.mark.usefixtures("_small")
def test_what_fails_in_the_middle_is_charged_and_fails_again(monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened()
    calls = []

    def broken(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) > 2:
            raise MemoryError("of a value 17")
        return packed(*arguments)

    monkeypatch.setattr(compact_measure, "packed", broken)
    for _ in range(2):
        with pytest.raises(EngineError) as caught:
            session.answer(WANTED, epsilon=1)
        assert "17" not in str(caught.value)
    assert len(calls) == 3
    assert session.budget.spent == pytest.approx(1)


def test_every_number_has_the_variance_of_its_block_and_row() -> None:
    """40,000 draws each: an estimated variance is off by 4 % with chance below 10⁻⁷; the seed is fixed."""
    blocks = [residual_block((3, 2), own) for own in ((), (0,), (0, 1))]
    laws = [Fraction(50), Fraction(400), Fraction(9_000)]
    counts = {(): np.array(7), (0,): np.array([1, 2, 4]), (0, 1): np.array([[1, 0], [0, 2], [3, 1]])}
    many = 40_000
    shift = [np.asarray(block.measure(counts[block.columns])) for block in blocks]
    draws = noised(blocks * many, laws * many, counts.__getitem__, TestRandomness(8)).reshape(many, -1)
    off = draws - np.concatenate(shift)
    expected = np.concatenate(
        [float(law) * np.asarray([1] if b.factors is None else b.factors) for b, law in zip(blocks, laws, strict=True)]
    )
    assert off.var(axis=0) == pytest.approx(expected, rel=0.04)


def test_what_is_too_much_for_a_ledger_is_refused_before_it_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact_design, "MANY_BLOCKS", 0)
    monkeypatch.setattr("confide.release.answer.size.LONGEST_ANSWER", 30)
    session = opened()
    with pytest.raises(ParameterError, match=r"measured numbers would take .* take a smaller k"):
        session.answer(WANTED, epsilon=1, strategy="residual")
    assert session.budget.spent == 0


def test_how_many_bits_are_kept_follows_from_how_many_numbers_there_are() -> None:
    tables = tuple(AskedTable(own, ("each",) * 3) for own in combinations(range(24), 3))
    (design,) = designs((10,) * 24, tables, "residual", "gaussian")
    change, cost = UnitChange(1, False), ZCDP(Fraction(1, 2))
    assert compact_bits(design, noises_for(design, change, cost)) == compact_design.MOST_BITS
    (small,) = designs((3, 2), (AskedTable((0, 1), ("each", "each")),), "residual", "gaussian")
    assert compact_bits(small, noises_for(small, change, cost)) is None


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(("epsilon", "compact"), [("1/100000000000", False), (1, True)])
def test_noise_that_is_too_wide_to_be_drawn_together_is_drawn_by_itself(epsilon: Any, compact: bool) -> None:
    """A small ε is no failure after a charge."""
    rules = RULES | {"budget": {"epsilon": 100, "delta": 1e-30}}
    session = confide.testing.open(rules, data={"t": DATA}, seed=1)
    answers = session.answer(WANTED, epsilon=epsilon, strategy="residual")
    assert isinstance(answers.measured, CompactDesign) == compact


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(1), Fraction(2) ** 100 / 12, Fraction(2) ** 100 / 11])
def test_what_is_drawn_together_is_what_can_be(monkeypatch: pytest.MonkeyPatch, variance: Fraction) -> None:
    monkeypatch.setattr(compact_design, "MANY_BLOCKS", 0)
    (design,) = designs((4,), (AskedTable((0,), ("each",)),), "residual", "gaussian")
    noises = [BlockNoise(DiscreteGaussian(variance))] * len(design.blocks)
    own = variances(design.blocks, [variance] * len(design.blocks))
    if compact_bits(design, noises) is None:
        with pytest.raises(ValueError, match="variances"):
            gaussians(own, lambda place: Fraction(own[place]), TestRandomness(1))
    else:
        assert len(gaussians(own, lambda place: Fraction(own[place]), TestRandomness(1))) == len(own)


def test_leaving_out_bits_comes_to_an_end() -> None:
    """Every number takes a byte at least, and what is charged fits with one for each."""
    kept, _ = within_room([packed(np.arange(-500, 500))], 8, lambda part, left: np.ones(1_000, dtype=np.int64), 10)
    assert len(kept[0]) >= 1_000
    assert compact_size(compact_design.ROOM, compact_design.LEAST_BITS) > LONGEST_ANSWER
