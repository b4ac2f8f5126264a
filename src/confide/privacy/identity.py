"""The identity of a request: a tree of plain values, written in one way only; and names, made of parts.

What was asked makes the key under which an outcome is kept. So it must not depend on how the program is written: a
class or a field that is renamed would make every stored answer unreachable, and the same question would be paid for
twice. Each class is spelled by a tag and by the values that tell one request from another, in an order of their own
(`Spelling`); the tree is written as JSON, where every list begins with a tag, so that no two trees share a text.

A change of a spelling is a change of keys: it needs another `VERSION`, and the golden keys under test say so.

In a name each part is written with its length, so that no two lists of parts share one. A plain name may be made of
public facts only. Whatever depends on data is named under a secret: a plain hash of data can be found by trying the
data that there might be, so that one row more or less would be told from the other.
"""

import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from typing import Any, Final

from confide.errors import ParameterError
from confide.privacy.limits import LONGEST_REQUEST

VERSION: Final = 1

Form = str | int | bool | None | list[Any]
"""A text, a whole number, a truth, nothing, or a list whose first member is a tag."""

Spelling = Mapping[type, tuple[str, Callable[[Any], Sequence[object]]]]
"""For each class its tag, and the parts that tell two of its values apart."""


_AS_THEY_ARE: Final = frozenset({str, int, bool})


_json: Final = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def form_of(value: object, spelling: Spelling) -> Form:
    """A value as a tree of plain values. What has no spelling is refused."""
    kind = type(value)
    if value is None or kind in _AS_THEY_ARE:
        return value  # type: ignore[return-value]
    known = spelling.get(kind)
    if known is not None:
        tag, parts = known
        return [tag, *[form_of(part, spelling) for part in parts(value)]]
    if kind is tuple:
        return ["list", *[form_of(part, spelling) for part in value]]  # type: ignore[attr-defined]
    if isinstance(value, Fraction):
        return ["ratio", value.numerator, value.denominator]
    if kind is float:
        return ["double", repr(value)]
    raise ParameterError(f"a {kind.__name__} cannot be part of a request; give a value of Python's own types")


class Spelled(str):
    """A part of a request that is written out already."""


def spelled(part: object, spelling: Spelling | None = None) -> Spelled:
    """A part of a request as it is written."""
    return Spelled(_json(form_of(part, spelling or {})))


def written(kind: str, *parts: object, spelling: Spelling | None = None) -> str:
    """The text of a request: its version, its kind and its parts."""
    texts = [part if type(part) is Spelled else spelled(part, spelling) for part in parts]
    head = _json(["request", VERSION, kind])
    return f"{','.join([head[:-1], *texts])}]"


def under_account(text: str, account: str) -> str:
    """The text of a request that is made under a named account of the budget: its last part says so."""
    return f"{text[:-1]},{json.dumps(['account', account], separators=(',', ':'))}]"


def digest_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def kept_form(text: str) -> str:
    """What a ledger keeps of a request: its text, or, if that is very long, how long it is and its digest."""
    if len(text) <= LONGEST_REQUEST:
        return text
    return json.dumps(["long", VERSION, len(text), digest_of(text)], separators=(",", ":"))


def nodes(form: object, tag: str) -> Iterator[list[Any]]:
    """All parts of a tree that have a tag, nested ones too, in the order in which they are written."""
    if isinstance(form, list) and form:
        if form[0] == tag:
            yield form
        for part in form[1:]:
            yield from nodes(part, tag)


def joined(*parts: str) -> bytes:
    """The parts as bytes, from which they can be read back whatever characters they hold."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join([piece for part in encoded for piece in (len(part).to_bytes(8), part)])


def plain_name(*parts: str) -> str:
    """A name that anybody can make again from the same parts."""
    return sha256(joined(*parts)).hexdigest()


# OpenSSL makes its tables at first use, under a lock: children of a fork that falls into that would wait for ever.
hmac.digest(b"", b"", "sha256")


def sealed_name(secret: bytes, *parts: str) -> str:
    """A name that tells those without the secret nothing, except that equal names have equal parts (HMAC-SHA-256)."""
    return hmac.digest(secret, joined(*parts), "sha256").hex()
