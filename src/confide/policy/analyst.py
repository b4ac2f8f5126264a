"""Names of analysts, and who is under which cap.

A cap holds only if nobody can step out from under it by another name, or by another spelling of their own.
"""

import unicodedata
from collections.abc import Collection, Iterator

from confide.errors import ParameterError
from confide.policy.node import Path
from confide.privacy.limits import LONGEST_ANALYST

ANYBODY_ELSE = "*"


def cap_faults(names: Collection[str]) -> Iterator[tuple[Path, str, str]]:
    """What is wrong with the names that have caps: where, what, and what to do."""
    if names and ANYBODY_ELSE not in names:
        yield (
            ("analysts",),
            "whoever is not named has no cap, and a name is easily made up",
            'add what all others together may spend: "*": 0.5, or "*": 0 to let nobody else ask',
        )
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(_folded(name), name)
        if other != name:
            yield ("analysts", name), f"{name!r} reads like {other!r}", "give each analyst one name"
        elif not _folded(name) or len(name) > LONGEST_ANALYST:
            advice = f"write a name of at most {LONGEST_ANALYST} characters; whoever gives none is under '*'"
            yield ("analysts", name), f"{name[:LONGEST_ANALYST]!r} is not the name of an analyst", advice


def require_analyst(name: object, capped: Collection[str]) -> None:
    """Refuse a name that is none, or that reads like one with a cap of its own and is spelled in another way."""
    if not isinstance(name, str) or len(name) > LONGEST_ANALYST:
        raise ParameterError("analyst is a short name")
    if name == ANYBODY_ELSE:
        raise ParameterError("the analyst '*' is everybody without a cap of their own; give a name, or none")
    if name in capped:
        return
    meant = next((one for one in capped if _folded(one) == _folded(name)), None)
    if meant is not None:
        raise ParameterError(f"the analyst {name!r} is spelled {meant!r} in the policy; write it like that")


def _folded(name: str) -> str:
    """A name as the eye takes it: without case, spaces, invisible characters and styles of letters."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(letter for letter in folded if unicodedata.category(letter)[0] not in "ZC")
