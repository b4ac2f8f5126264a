"""Names of things, made of parts: each part is written with its length, so that no two lists of parts share a name.

A plain name may be made of public facts only. Whatever depends on data is named under a secret: a plain hash of data
can be found by trying the data that there might be, so that one row more or less would be told from the other.
"""

import hmac
from hashlib import sha256


def joined(*parts: str) -> bytes:
    """The parts as bytes, from which they can be read back whatever characters they hold."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join([piece for part in encoded for piece in (len(part).to_bytes(8), part)])


def plain_name(*parts: str) -> str:
    """A name that anybody can make again from the same parts."""
    return sha256(joined(*parts)).hexdigest()


def sealed_name(secret: bytes, *parts: str) -> str:
    """A name that tells nothing to whoever has not the secret, but that equal parts have equal names (HMAC-SHA-256)."""
    return hmac.digest(secret, joined(*parts), "sha256").hex()
