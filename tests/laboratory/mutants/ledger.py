"""The record of what was spent."""

from tests.laboratory.mutation import Mutant

_SQLITE, _DAMAGE = "tests/ledger/test_sqlite.py", "tests/ledger/test_damage.py"

MUTANTS = (
    Mutant("the budget is not checked", "ledger/booking.py", "if not _within(total, terms.cap) or (limit is not None and not _within(_plus(counted, request.amount), limit[0])):", "if limit is not None and not _within(_plus(counted, request.amount), limit[0]):", _SQLITE),
    Mutant("the cap of an analyst is not checked", "ledger/booking.py", "if not _within(total, terms.cap) or (limit is not None and not _within(_plus(counted, request.amount), limit[0])):", "if not _within(total, terms.cap):", _SQLITE),
    Mutant("a charge is not added to the total", "ledger/booking.py", "        \"total\": write_quanta(total),\n        \"accounts\"", "        \"accounts\"", _SQLITE),
    Mutant("a charge is not added to its analyst", "ledger/booking.py", "own = request.amount if account is None else _plus(account, request.amount)", "own = request.amount", _SQLITE),
    Mutant("a charge of nothing is taken", "ledger/booking.py", "        if not any(amount):\n            raise ParameterError(\"a charge of nothing is refused: whatever reads private data costs something\")\n", "", _SQLITE),
    Mutant("a key may stand for a larger loss", "ledger/booking.py", "if read_quanta(body[\"amount\"]) != request.amount or body[\"analyst\"] != request.analyst:", "if body[\"analyst\"] != request.analyst:", _SQLITE),
    Mutant("a key may be another analyst's", "ledger/booking.py", "if read_quanta(body[\"amount\"]) != request.amount or body[\"analyst\"] != request.analyst:", "if read_quanta(body[\"amount\"]) != request.amount:", _SQLITE),
    Mutant("an altered answer is given out", "ledger/booking.py", "    if hashlib.sha256(kept).hexdigest() != body[\"answer\"]:\n", "    if False:\n", f"{_DAMAGE} tests/ledger"),
    Mutant("a replay does not add up", "ledger/replay.py", "if tuple(map(int, body[\"total\"])) != self._total or body[\"terms\"] != self._terms_at:", "if body[\"terms\"] != self._terms_at:", f"{_DAMAGE} tests/ledger"),
    Mutant("a replay does not check hashes", "ledger/replay.py", "if link(previous, encoded) != stated:", "if False:", f"{_DAMAGE} tests/ledger"),
    Mutant("a replay lets a charge pass the budget", "ledger/replay.py", "if True in map(gt, self._total, terms.cap) or (terms.caps and self._over(terms, analyst, amount, own)):", "if terms.caps and self._over(terms, analyst, amount, own):", "tests/ledger/test_export.py"),
    Mutant("a replay lets one charge be answered twice", "ledger/replay.py", "        self._unanswered.remove(body[\"charge\"])\n", "", "tests/ledger"),
    Mutant("the accounts of analysts are not checked", "ledger/replay.py", "if int(self._accounts, 16) != booking.digest(self._own):", "if False:", "tests/ledger"),
    Mutant("a torn slot of the anchor is believed", "ledger/anchor.py", "        if hashlib.sha256(text).hexdigest().encode() != check:\n            return None\n", "", "tests/ledger/test_anchor.py"),
    Mutant("a ledger may change its currency", "ledger/terms.py", "        if changed.budget.pure != self.budget.pure:", "        if False:", "tests/ledger"),
    Mutant("a budget that differs from the ledger's is taken", "ledger/terms.py", "        if budget is not None and (budget.epsilon, budget.delta) != (self.budget.epsilon, self.budget.delta):", "        if False:", "tests/ledger"),
    Mutant("names that have no cap share none", "ledger/booking.py", "    if not terms.shares(analyst):\n        return accounts.get(analyst, terms.nothing)\n", "    if True:\n        return accounts.get(analyst, terms.nothing)\n", _SQLITE),
    Mutant("a shared cap counts what named analysts spent", "ledger/booking.py", "        total = _minus(total, accounts.get(name, terms.nothing))\n", "        pass\n", _SQLITE),
    Mutant("one of two amounts within a cap", "ledger/booking.py", "return all(one <= other for one, other in zip(amount, most, strict=True))", "return any(one <= other for one, other in zip(amount, most, strict=True))", _SQLITE),
    Mutant("a replay forgets a shared cap", "ledger/replay.py", "            own = tuple(map(sub, self._total, self._named))\n", "            pass\n", "tests/ledger/test_export.py::test_a_shared_cap_that_was_passed_is_noticed"),
    Mutant("a charge of another ledger is answered", "ledger/keeping.py", "if charge.ledger != self.identity or known is None or known[0][\"sequence\"] != sequence:", "if known is None or known[0][\"sequence\"] != sequence:", _SQLITE),
    Mutant("a second answer takes the place of the first", "ledger/keeping.py", "            if known[1]:\n                return storage.answer(connection, *known), position\n", "", _SQLITE),
    Mutant("a key that was paid for is paid again", "ledger/keeping.py", "            if known is not None:\n                return booking.repeated(known[0], request, self.identity), position\n", "", _SQLITE),
    Mutant("an answer is shown before it is anchored", "ledger/keeping.py", "            self._transactions.catch_up()\n        return answer", "            pass\n        return answer", "tests/ledger/test_opening.py::test_an_answer_is_anchored_before_it_is_shown"),
    Mutant("a ledger behind its anchor is taken", "ledger/soundness.py", "    if position.sequence < mark.sequence:\n", "    if False:\n", f"{_DAMAGE}::test_yesterdays_ledger_is_refused"),
    Mutant("another history of the same length is taken", "ledger/soundness.py", "    if position.sequence == mark.sequence and position.hash.hex() != mark.hash:\n        raise forked(mark, site)\n", "", f"{_DAMAGE}::test_another_history_of_the_same_length_is_refused"),
    Mutant("an anchor of another ledger is taken", "ledger/soundness.py", "    if mark.ledger != identity:\n", "    if False:\n", f"{_DAMAGE}::test_an_anchor_of_another_ledger_is_refused"),
    Mutant("accounts that were set back are taken", "ledger/soundness.py", "if digest(accounts) != position.accounts or any(", "if any(", f"{_DAMAGE}::test_tampering_is_noticed_when_it_is_opened"),
    Mutant("a forgotten answer is given again", "ledger/soundness.py", "if body.get(\"key\") != key or seal != storage.seal(sequence, key, answer):", "if body.get(\"key\") != key:", _DAMAGE),
    Mutant("an anchor that goes back", "ledger/anchor.py", "        if newest is not None and newest.sequence >= mark.sequence:\n            return\n", "", "tests/ledger/test_anchor.py::test_never_goes_back"),
    Mutant("an anchor that was replaced is used", "ledger/anchor.py", "if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):", "if False:", "tests/ledger/test_anchor.py::test_a_replaced_anchor_is_noticed"),
    Mutant("an anchor that is not forced to disk", "ledger/anchor.py", "        sync(self._descriptor, f\"the anchor {self.path}\")\n", "        pass\n", "tests/ledger/test_failures.py::test_a_failed_fsync_ends_the_process"),
    Mutant("a secret that everybody knows", "ledger/keeping.py", "identity, secret = os.urandom(16).hex(), os.urandom(32)", "identity, secret = os.urandom(16).hex(), bytes(32)", "tests/release/test_keys.py::test_the_same_request_has_another_key_in_another_ledger"),
    Mutant("caps that differ from the ledger's are taken", "ledger/terms.py", "if caps is not None and dict(Terms.of(self.budget, caps).caps) != dict(self.caps):", "if False:", _SQLITE),
)  # fmt: skip
