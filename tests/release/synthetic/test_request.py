"""`Session.synthesize`: payments, resumption, pure and approximate budgets, both kinds of neighbours, bad input."""

import contextlib
import re
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
import pytest

import confide
import confide.testing
from confide.errors import BudgetError, EngineError, ParameterError, QueryError
from confide.privacy.budget import Currency
from confide.privacy.loss import ZCDP, PureDP
from confide.release import Session
from confide.release.synthetic.curator import LedgerCurator
from confide.release.synthetic.synthetic import Synthetic
from confide.synthesis import rap
from tests.release.samples import APPROXIMATE, PURE, frames, policy, row_policy, rows_frame
from tests.synthesis.fitting import pretend_to_fit

WORKLOAD = confide.marginals(2, ["region", "sex", "age"])
BINS = {"age": 20}


@pytest.fixture(autouse=True)
def _no_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_to_fit(monkeypatch)


def opened(budget: dict[str, Any], seed: int = 1) -> Session:
    return confide.testing.open(policy(budget), frames(), seed=seed)


def synthesized(session: Session, epsilon: object = 5, **more: Any) -> Synthetic:
    arguments = {"workload": WORKLOAD, "table": "person", "bins": BINS, "rows": 20} | more
    return session.synthesize(epsilon=epsilon, **arguments)


def spent(session: Session) -> Currency:
    return session._holdings.ledger.spent()


# --- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
@pytest.mark.parametrize(
    "options",
    [
        {"select": "closure"},
        {"select": "marginals", "rounds": 2},
        {"select": "queries", "rounds": 2, "picks": 3},
        {"select": "all"},
    ],
    ids=lambda options: options["select"],
)
def test_a_finished_call_costs_what_was_asked_to_the_last_digit(
    budget: dict[str, Any], options: dict[str, Any]
) -> None:
    with opened(budget) as session:
        twin = synthesized(session, "0.7", **options)
        asked = session._holdings.standing().budget.cost(Fraction("0.7"))
        assert spent(session) == asked
        charges = [entry for entry in session._holdings.ledger.entries() if entry.kind == "charge"]
        assert len(charges) >= 2
        assert twin.cost.epsilon == Fraction("0.7")
        assert isinstance(asked, ZCDP if "delta" in budget else PureDP)


def test_the_same_call_again_is_free_and_the_same() -> None:
    with opened(APPROXIMATE) as session:
        first = synthesized(session)
        before = spent(session)
        assert synthesized(session).to_bytes() == first.to_bytes()
        assert spent(session) == before
        assert synthesized(session, 6).to_bytes() != first.to_bytes()


class _Stop(BaseException):
    """What Ctrl-C does, at a moment of our choice."""


def test_a_call_that_was_stopped_has_paid_for_its_steps_alone_and_goes_on_there() -> None:
    def stop(what: str, *_: object) -> None:
        if what.startswith("round 2"):
            raise _Stop

    options = {"select": "marginals", "rounds": 3}
    with opened(APPROXIMATE) as session, opened(APPROXIMATE) as other:
        with pytest.raises(_Stop):
            synthesized(session, progress=stop, **options)
        part, whole = spent(session), session._holdings.standing().budget.cost(Fraction(5))
        assert isinstance(part, ZCDP)
        assert isinstance(whole, ZCDP)
        assert 0 < part.rho < whole.rho
        twin = synthesized(session, **options)
        assert spent(session) == whole
        # The same noise, step by step, as a call that was never stopped.
        assert twin.to_bytes() == synthesized(other, **options).to_bytes()


def test_an_interruption_says_what_was_spent() -> None:
    def stop(what: str, *_: object) -> None:
        if what.startswith("round 1"):
            raise KeyboardInterrupt

    for budget in (PURE, APPROXIMATE):
        with opened(budget) as session:
            with pytest.raises(KeyboardInterrupt) as stopped:
                synthesized(session, progress=stop, select="marginals", rounds=3)
            note = stopped.value.__notes__[0]
            assert note.startswith(f"ε = {session.budget.spent:.6g} of ε = 5 was spent")
            assert session.budget.spent > 0


@pytest.mark.parametrize("place", [1, 2])
def test_a_step_that_was_stopped_after_its_charge_counts(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = LedgerCurator._read
    reads: list[int] = []

    def stop(curator: LedgerCurator, charge: Any) -> Any:
        reads.append(1)
        if len(reads) == place:
            raise KeyboardInterrupt
        return real(curator, charge)

    with opened(APPROXIMATE) as session:
        with monkeypatch.context() as patch:
            patch.setattr(LedgerCurator, "_read", stop)
            with pytest.raises(KeyboardInterrupt) as stopped:
                synthesized(session, select="marginals", rounds=3)
        note = stopped.value.__notes__[-1]
        assert note.startswith(f"ε = {session.budget.spent:.6g} of ε = 5 was spent")
        assert session.budget.spent > 0
        synthesized(session, select="marginals", rounds=3)
        assert session.budget.spent == 5


def test_a_budget_that_does_not_hold_the_whole_call_is_refused_before_anything_is_spent() -> None:
    with opened({"epsilon": 1, "delta": 1e-9}) as session:
        with pytest.raises(BudgetError, match="Nothing was charged"):
            synthesized(session, 2)
        assert spent(session) == ZCDP(Fraction(0))


def test_a_budget_that_others_spent_meanwhile_says_what_was_charged() -> None:
    with opened({"epsilon": 6, "delta": 1e-9}) as session:

        def spend(what: str, *_: object) -> None:
            if what.startswith("round 2"):
                for epsilon in (3, 2, 1, "0.5"):
                    with contextlib.suppress(BudgetError):
                        session.sql("SELECT COUNT(*) AS n FROM person", epsilon=epsilon)

        with pytest.raises(BudgetError, match=r"does not hold the rest of this call; ε = .* of ε = 5 was spent") as met:
            synthesized(session, progress=spend, select="marginals", rounds=3)
        assert "othing was charged" not in str(met.value)


# --- where its randomness comes from ----------------------------------------------------------------------------------


def seeds_of(session: Session, monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[int]:
    """What each fit of a call begins with."""
    seeds: list[int] = []
    fitted = rap.project
    with monkeypatch.context() as patch:

        def watched(sizes: Any, measured: Any, total: float, rows: int, seed: int, *rest: Any) -> Any:
            seeds.append(seed)
            return fitted(sizes, measured, total, rows, seed, *rest)

        patch.setattr(rap, "project", watched)
        with contextlib.suppress(_Stop):
            synthesized(session, select="marginals", rounds=3, **more)
    return seeds


def test_the_seed_of_a_fit_is_drawn_and_has_nothing_to_do_with_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed made from a key that was made from the data made the records that were drawn tell of them."""
    found = [
        seeds_of(confide.testing.open(policy(), frames(people), seed=seed), monkeypatch)
        for people, seed in ((2_000, 1), (1_999, 1), (2_000, 2))
    ]
    assert found[0] == found[1], "other data, the same draws"
    assert found[0] != found[2], "the same data, other draws"


def test_kernel_randomness_gives_a_seed_of_its_own_to_every_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = []
    for place in ("one", "two"):
        with confide.open(policy(), frames(), tmp_path / place, create=True) as session:
            found.append(seeds_of(session, monkeypatch))
    assert found[0] != found[1]


def test_a_call_that_is_made_again_goes_on_with_the_seed_of_its_first_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(what: str, *_: object) -> None:
        if what.startswith("round 2"):
            raise _Stop

    with confide.open(policy(), frames(), tmp_path / "ledger", create=True) as session:
        first = seeds_of(session, monkeypatch, progress=stop)
    with confide.open(policy(), frames(), tmp_path / "ledger") as session:
        again = seeds_of(session, monkeypatch)
    assert len(first) == 2
    assert again[:2] == first


def test_no_part_of_a_key_is_printed(tmp_path: Path) -> None:
    with confide.open(policy(), frames(), tmp_path / "ledger", create=True) as session:
        synthesized(session)
        bodies = [entry.body for entry in session._holdings.ledger.entries() if entry.kind == "charge"]
    keys = [body["key"] for body in bodies]
    printed = " ".join(body["purpose"] for body in bodies)
    assert "synthesize" in printed
    assert not re.findall(r"[0-9a-f]{8}", printed)
    assert not [key for key in keys if key[:6] in printed]


def test_arithmetic_between_steps_that_fails_ends_in_the_constant_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> NoReturn:
        raise FloatingPointError("1234.5")

    with opened(APPROXIMATE) as session, monkeypatch.context() as patch:
        patch.setattr(rap, "project", broken)
        for _ in range(2):
            with pytest.raises(EngineError) as caught:
                synthesized(session)
            assert caught.value.__context__ is None
        kinds = [entry.kind for entry in session._holdings.ledger.entries()]
        assert kinds.count("charge") == kinds.count("answer") == 3


def test_what_the_callers_own_function_raises_is_the_callers() -> None:
    def cancel(*_: object) -> NoReturn:
        raise LookupError("cancelled")

    with opened(APPROXIMATE) as session, pytest.raises(LookupError, match="cancelled"):
        synthesized(session, progress=cancel)


# --- what comes out ---------------------------------------------------------------------------------------------------


def test_a_unit_with_many_rows_counts_as_often_as_its_bound() -> None:
    """Five visits at most: sensitivity 5, and one unit with a hundred visits adds five."""
    data = frames(50)
    owner = pl.DataFrame({"person_id": [7] * 100, "ward": [2] * 100, "cost": [1.0] * 100})
    data["visit"] = owner.with_columns(pl.col("person_id").cast(data["visit"].schema["person_id"])).cast(
        data["visit"].schema  # type: ignore[arg-type]
    )
    with confide.testing.open(policy({"epsilon": 10**5}), data, seed=1) as session:
        twin = session.synthesize(confide.marginals(1, ["ward"]), epsilon=90_000, table="visit", rows=5)
        assert len(twin) == 5


def test_rows_without_a_declared_value_are_in_no_table() -> None:
    rules = row_policy({"epsilon": 10**5})
    frame = {"t": pl.DataFrame({"g": ["a", "zzz", None, "b"], "x": [1, 2, 3, None], "y": [0.5, 0.5, 0.5, 0.5]})}
    with confide.testing.open(rules, frame, seed=1) as session:
        twin = session.synthesize(confide.marginals(2, ["g", "x"]), epsilon=90_000, rows=5)
        assert len(twin) == 1
        alone = session.synthesize(confide.marginals(1, ["g"]), epsilon=9_000, rows=5)
        assert len(alone) == 2


def test_an_empty_table_costs_and_looks_like_any_other() -> None:
    empty = {"t": rows_frame()["t"].clear()}
    with confide.testing.open(row_policy(), empty, seed=1) as session:
        twin = session.synthesize(confide.marginals(2, ["g", "x"]), epsilon=1, rows=5)
        assert len(twin) >= 1
        assert spent(session) == PureDP(Fraction(1))


@pytest.mark.parametrize(("rows", "factor"), [("private", 1), ("public", 2)])
def test_replacing_a_row_pays_for_two_cells(rows: str, factor: int) -> None:
    """The noise of a marginal has L2² = 1 for add-remove, 2 for replace-one, and L1 = 1 or 2."""
    from confide.release.synthetic.request import SynthesisOptions, bind_synthesis  # noqa: PLC0415

    with confide.testing.open(row_policy(PURE, rows), rows_frame(), seed=1) as session:
        design = bind_synthesis(
            session._holdings, SynthesisOptions(confide.marginals(1, ["g"]), 1), session._holdings.standing().budget
        )
        assert (design.tables.l1, design.tables.l2_squared) == (factor, factor)
        assert design.rows == 1


# --- workloads in SQL and from the ledger -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT AVG(age) FROM person", r"COUNT\(\*\)"),
        ("SELECT COUNT(*) FROM visit", "rows of person alone"),
        ("SELECT COUNT(*) FROM person WHERE age > 65", "cuts through a bin"),
        ("SELECT COUNT(*) FROM person WHERE income > 5", "no column 'income'"),
        ("SELECT COUNT(*) FROM person WHERE (sex = 'F' OR region = 'N') AND age < 20", "one column at a time"),
        ("SELECT COUNT(*) FROM person", "all rows needs no workload"),
        ("SELECT sex, COUNT(*) AS n FROM person GROUP BY sex ORDER BY n", "ORDER BY"),
    ],
)
def test_what_is_no_count_is_refused(text: str, words: str) -> None:
    with opened(PURE) as session:
        with pytest.raises((QueryError, ParameterError), match=words):
            synthesized(session, workload=confide.workload.from_sql([text]), columns=["region", "sex", "age"])
        assert spent(session) == PureDP(Fraction(0))


def test_the_history_is_what_was_asked_padded_with_what_was_not() -> None:
    with opened(PURE) as session:
        with pytest.raises(ParameterError, match="nothing was asked"):
            session.history("person", pad=0)
        session.sql("SELECT region, COUNT(*) AS n FROM person WHERE sex = 'F' GROUP BY region", epsilon=1)
        session.sql("SELECT AVG(age) AS a FROM person WHERE region = 'N'", epsilon=1)
        session.sql("SELECT ward, COUNT(*) AS n FROM visit GROUP BY ward", epsilon=1)
        alone = session.history("person", pad=0)
        assert [str(part) for part in alone.parts] == ["region, sex", "region, age"]
        longer = session.history("person", pad=10)
        assert len(longer.parts) == 10
        assert longer == session.history("person", pad=10)
        assert session.history("visit", pad=0).parts[0].columns == ("ward",)  # type: ignore[union-attr]
        with pytest.raises(ParameterError, match="pad = -1"):
            session.history("person", pad=-1)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"workload": "marginals"}, r"give confide.marginals\(k=3\)"),
        ({"table": None}, "say which table"),
        ({"table": "persons"}, "no private table"),
        ({"table": "region_name"}, "no private table"),
        ({"method": "magic"}, "write auto, rap"),
        ({"select": "best"}, "write auto"),
        ({"rows": 0}, "at least one row"),
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": "1e-9"}, "buys no round"),
        ({"epsilon": float("nan")}, "finite"),
        ({"workload": confide.marginals(9)}, "write a smaller k"),
        ({"columns": ["town"], "bins": None}, "no declared values"),
        ({"columns": ["incomes"], "bins": None}, "did you mean income"),
        ({"bins": {"age": 7.5}}, "positive multiple"),
        ({"workload": confide.marginals(1, ["income"])}, "no column 'income'"),
        ({"rounds": 2, "select": "all"}, "has no rounds"),
    ],
)
def test_bad_input_is_refused_and_costs_nothing(arguments: dict[str, Any], words: str) -> None:
    with opened(APPROXIMATE) as session:
        with pytest.raises(ParameterError, match=words):
            synthesized(session, **arguments)
        assert spent(session) == ZCDP(Fraction(0))


def test_without_jax_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confide.synthesis.extra.find_spec", lambda _: None)
    with opened(PURE) as session, pytest.raises(ParameterError, match=r"confide\[synthesis\]"):
        synthesized(session)


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "approximate"])
@pytest.mark.parametrize("select", ["closure", "marginals", "queries"])
def test_an_epsilon_that_buys_no_step_is_refused_before_the_first(budget: dict[str, Any], select: str) -> None:
    """By the plan and by the call alike, and nothing is charged."""
    with opened(budget) as session:
        before = spent(session)
        for call in (session.plan_synthesize, session.synthesize):
            with pytest.raises(ParameterError, match=r"buys no round|too small"):
                call(WORKLOAD, "1e-22", table="person", bins=BINS, rows=20, select=select)
        assert spent(session) == before
