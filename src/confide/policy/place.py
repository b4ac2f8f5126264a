"""Where data and ledgers are: how an address is shown without its password."""

import re

_PASSWORD = re.compile(r"^([a-z][a-z0-9+.-]*://[^/?#:@]*):[^/?#]*@", re.IGNORECASE)
_PARAMETER = re.compile(r"([?&](?:ssl)?password=)[^&#]*", re.IGNORECASE)
_TOKEN = re.compile(r"(;token=)[^;?]*", re.IGNORECASE)  # of Spark Connect


def without_password(address: str) -> str:
    """The address with stars in the place of a password."""
    return _TOKEN.sub(r"\1***", _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", address)))


def has_password(address: str) -> bool:
    return without_password(address) != address
