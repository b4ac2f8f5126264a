"""The record of what was spent."""

from tests.laboratory.mutation import Mutant

_SQLITE, _DAMAGE = "tests/ledger/test_sqlite.py", "tests/ledger/test_damage.py"

MUTANTS = (
    Mutant("the budget is not checked", "ledger/booking.py", "if not _within(total, terms.cap) or (limit is not None and not _within(own, limit[0])):", "if limit is not None and not _within(own, limit[0]):", _SQLITE),
    Mutant("the cap of an analyst is not checked", "ledger/booking.py", "if not _within(total, terms.cap) or (limit is not None and not _within(own, limit[0])):", "if not _within(total, terms.cap):", _SQLITE),
    Mutant("a charge is not added to the total", "ledger/booking.py", "        \"total\": write_quanta(total),\n        \"accounts\"", "        \"accounts\"", _SQLITE),
    Mutant("a charge is not added to its analyst", "ledger/booking.py", "    return body, own\n\n\ndef answer(", "    return body, before\n\n\ndef answer(", _SQLITE),
    Mutant("a charge of nothing is taken", "ledger/booking.py", "        if not any(amount):\n            raise ParameterError(\"a charge of nothing is refused: whatever reads private data costs something\")\n", "", _SQLITE),
    Mutant("a key may stand for a larger loss", "ledger/booking.py", "if read_quanta(body[\"amount\"]) != request.amount or body[\"analyst\"] != request.analyst:", "if body[\"analyst\"] != request.analyst:", _SQLITE),
    Mutant("a key may be another analyst's", "ledger/booking.py", "if read_quanta(body[\"amount\"]) != request.amount or body[\"analyst\"] != request.analyst:", "if read_quanta(body[\"amount\"]) != request.amount:", _SQLITE),
    Mutant("an altered answer is given out", "ledger/booking.py", "    if hashlib.sha256(kept).hexdigest() != body[\"answer\"]:\n", "    if False:\n", f"{_DAMAGE} tests/ledger"),
    Mutant("a replay does not add up", "ledger/replay.py", "if tuple(map(int, body[\"total\"])) != self._total or body[\"terms\"] != self._terms_at:", "if body[\"terms\"] != self._terms_at:", f"{_DAMAGE} tests/ledger"),
    Mutant("a replay does not check hashes", "ledger/replay.py", "if link(previous, encoded) != stated:", "if False:", f"{_DAMAGE} tests/ledger"),
    Mutant("a replay lets a charge pass the budget", "ledger/replay.py", "if True in map(gt, self._total, terms.cap) or (terms.caps and self._over(terms, analyst, own)):", "if terms.caps and self._over(terms, analyst, own):", "tests/ledger"),
    Mutant("a replay lets one charge be answered twice", "ledger/replay.py", "        self._unanswered.remove(body[\"charge\"])\n", "", "tests/ledger"),
    Mutant("the accounts of analysts are not checked", "ledger/replay.py", "if int(self._accounts, 16) != booking.digest(self._own):", "if False:", "tests/ledger"),
    Mutant("a torn slot of the anchor is believed", "ledger/anchor.py", "        if hashlib.sha256(text).hexdigest().encode() != check:\n            return None\n", "", "tests/ledger/test_anchor.py"),
    Mutant("a ledger may change its currency", "ledger/terms.py", "        if changed.budget.pure != self.budget.pure:", "        if False:", "tests/ledger"),
    Mutant("a budget that differs from the ledger's is taken", "ledger/terms.py", "        if budget is not None and (budget.epsilon, budget.delta) != (self.budget.epsilon, self.budget.delta):", "        if False:", "tests/ledger"),
)  # fmt: skip
