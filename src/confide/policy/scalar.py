"""Reading single values: numbers, whole numbers, flags, and how a wrong one is named in a message."""

from fractions import Fraction

from confide.policy.findings import Findings
from confide.policy.node import Block, Leaf, Listing, Node, ratio
from confide.policy.spelling import Path

BLANK = "a blank is left to fill in"


def say(node: Node) -> str:
    """What was found, in plain words."""
    if isinstance(node, Block):
        return "a mapping" if node.entries else "an empty mapping"
    if isinstance(node, Listing):
        return "a list" if node.items else "an empty list"
    if node.blank:
        return "a blank that is left to fill in"
    if node.value is None:
        return "nothing"
    text = node.text if len(node.text) <= 60 else f"{node.text[:57]}..."
    return f"the text {text!r}" if isinstance(node.value, str) else text


def read_number(node: Node, path: Path, findings: Findings) -> Fraction | None:
    """An exact number, or None and a finding."""
    if isinstance(node, Leaf) and not node.blank:
        if isinstance(node.value, int | Fraction) and not isinstance(node.value, bool):
            return Fraction(node.value)
        if isinstance(node.value, float):
            what = f"{say(node)} is not a number that can be used"
            findings.add(path, what, "write a finite number of at most 60 digits")
            return None
        if isinstance(node.value, str) and (number := ratio(node.value)) is not None:
            return number
    _expected("a number", node, path, findings)
    return None


def read_whole(node: Node, path: Path, findings: Findings, least: int, most: int) -> int | None:
    """A whole number between two ends, or None and a finding."""
    allowed = f"write a whole number from {least} to {most:,}"
    number = read_number(node, path, findings)
    if number is None:
        return None
    if number.denominator != 1 or not least <= number <= most:
        findings.add(path, f"{say(node)} is not allowed here", allowed)
        return None
    return int(number)


def read_flag(node: Node, path: Path, findings: Findings) -> bool | None:
    """true or false, or None and a finding."""
    if isinstance(node, Leaf) and isinstance(node.value, bool):
        return node.value
    _expected("true or false", node, path, findings)
    return None


def _expected(kind: str, node: Node, path: Path, findings: Findings) -> None:
    if isinstance(node, Leaf) and node.blank:
        findings.add(path, BLANK, f"write {kind}")
    else:
        findings.add(path, f"expected {kind}, found {say(node)}")
