"""Addresses of PostgreSQL, read once for all who use them: postgresql://user@host:5432/database?schema=people.

Everything that libpq reads in an address may stand in it; `schema` and `anchor` are ours. A password may also come from
PGPASSWORD or ~/.pgpass, and is never shown.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, Final
from urllib.parse import unquote

HOW_TO_QUOTE: Final = "with %40 for @, %2F for / and %25 for % in a name or password"

_SCHEME: Final = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_OURS: Final = ("schema", "anchor")
_PORTS: Final = re.compile(r"[0-9]*(,[0-9]*)*")
_SETTINGS: Final = re.compile(
    r"\s*(host|hostaddr|port|dbname|user|password|passfile|service|sslmode|options|connect_timeout)\s*=", re.IGNORECASE
)

_USER: Final = re.compile(r"^([a-z][a-z0-9+.-]*://[^/?:@]*):[^/?]*@", re.IGNORECASE)
_HOST: Final = r"(\[[^\]/?@]*\]|[^:/?@,\[]*)(:[0-9]*)?"
_WHOLE: Final = re.compile(rf"[a-z]+://([^/?:@]*(:\*\*\*)?@)?{_HOST}(,{_HOST})*(/[^?@]*)?", re.IGNORECASE)
_NO_DATABASE: Final = re.compile(r"[^/]*//[^/@]*:[^/@]*")
_PARAMETER: Final = re.compile(r"[\w%]+=.*", re.DOTALL)
_SECRET: Final = re.compile(r"password|secret|scram", re.IGNORECASE)
_TOKEN: Final = re.compile(r"(;token=)[^;?]*", re.IGNORECASE)  # of Spark Connect
_SETTING: Final = re.compile(r"(\w*(?:password|secret|scram)\w*\s*=\s*)('(?:[^'\\]|\\.)*'?|\S+)", re.IGNORECASE)
_HIDDEN: Final = "***"


def is_postgres(place: object) -> bool:
    """Whether a text is meant as an address of PostgreSQL."""
    return isinstance(place, str) and _SCHEME.match(place) is not None


def is_settings(place: str) -> bool:
    """Whether a text is libpq's other way to name a server, host=... dbname=..., which is nobody's file either."""
    return _SETTINGS.match(place) is not None


@dataclass(frozen=True, slots=True)
class Address:
    """A database on a server: what libpq is told of it, and our own parameters beside it."""

    parameters: Mapping[str, str] = field(repr=False, hash=False)
    """What libpq is told; a password may be among it."""
    schema: str | None = None
    anchor: str | None = None

    @property
    def database(self) -> str:
        return self.parameters.get("dbname", "")

    @property
    def shown(self) -> str:
        """The address without a password, and without our own parameters."""
        user, host = self.parameters.get("user", ""), self.parameters.get("host", "")
        socket = host.startswith("/")
        port = self.parameters.get("port", "")
        place = "" if socket else host + (f":{port}" if port and "," not in host else "")
        told = [f"host={host}"] if socket else []
        told += [f"port={port}"] if port and (socket or "," in host) else []
        shown = f"postgresql://{user}{'@' if user else ''}{place}/{self.database}"
        return shown + (f"?{'&'.join(told)}" if told else "")


def read_address(text: str, psycopg: ModuleType) -> Address | None:
    """What an address says to a driver; None if it cannot be read."""
    split = _split(text)
    if split is None:
        return None
    plain, own = split
    found: dict[str, Any] | None = None
    with suppress(psycopg.Error):  # its text may quote the password
        found = psycopg.conninfo.conninfo_to_dict(plain)
    if found is None:
        return None
    parameters = {name: str(value) for name, value in found.items() if value is not None}
    if not _PORTS.fullmatch(parameters.get("port", "")):
        return None
    return Address(MappingProxyType(parameters), own.get("schema"), own.get("anchor"))


def without_password(address: str) -> str:
    """The address with stars in the place of a password; all of it is stars if nobody can tell where one ends."""
    if is_settings(address):
        return _SETTING.sub(rf"\1{_HIDDEN}", address)
    whole, mark, query = _USER.sub(rf"\1:{_HIDDEN}@", address).partition("?")
    if is_postgres(address) and not _is_clear(whole, query):
        return f"postgresql://{_HIDDEN}"
    hidden = "&".join(_without_secret(part) for part in query.split("&"))
    return _TOKEN.sub(rf"\1{_HIDDEN}", f"{whole}{mark}{hidden}")


def leaving_password_out(address: str) -> str:
    """The address for a file that others read: the password is left to the environment of the client."""
    return re.sub(rf"[?&][^=&?]*={re.escape(_HIDDEN)}", "", without_password(address)).replace(f":{_HIDDEN}@", "@")


def has_password(address: str) -> bool:
    return without_password(address) != address


def _is_clear(whole: str, query: str) -> bool:
    """Whether an address without its password has the form of one, so that no part of a password is elsewhere in it."""
    if "@" in query and _NO_DATABASE.fullmatch(whole):  # a password with a question mark, or a user as a parameter
        return False
    parts = (part for part in query.split("&") if part)
    return _WHOLE.fullmatch(whole) is not None and all(_PARAMETER.fullmatch(part) for part in parts)


def _without_secret(part: str) -> str:
    name, equals, _ = part.partition("=")
    return f"{name}={_HIDDEN}" if equals and _SECRET.search(unquote(name)) else part


def _split(text: str) -> tuple[str, dict[str, str]] | None:
    """The address for libpq, and our own parameters."""
    if not is_postgres(text) or "%00" in text or "\0" in text:
        return None
    whole, mark, query = _SCHEME.sub("postgresql://", text, count=1).partition("?")
    # The rest of a password with a slash or an @ would be taken for a database or a host, and be shown.
    if "@" in whole.partition("://")[2].partition("/")[2] or whole.count("@") > 1:
        return None
    own: dict[str, str] = {}
    rest = []
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if unquote(name) not in _OURS:
            rest.append(part)
        elif unquote(name) in own:  # which of two was meant?
            return None
        else:
            own[unquote(name)] = unquote(value)
    return (f"{whole}{mark}{'&'.join(rest)}" if rest else whole), own
