"""What a method needs that is not always installed."""

from importlib.util import find_spec

from confide.errors import ParameterError
from confide.host.fork import inherited


def require(package: str) -> None:
    """Refuse, in words, where it is not installed, or cannot be used after a fork."""
    if find_spec(package) is None:
        raise ParameterError(f"synthesis needs the package {package}: pip install 'confide[synthesis]'")
    if inherited(package):
        raise ParameterError(
            f"this process was forked from one that had loaded {package}, whose threads are not here: start it "
            "anew (spawn), or fork before anything is synthesized"
        )
