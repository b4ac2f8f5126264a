"""YAML text as a tree of nodes with lines.

Built from the parser's events rather than with a loader, because that gives lines, duplicate keys, exact numbers and a
bound on aliases; tags are refused, so that no text can make an object. See docs/decisions/policy.md.
"""

from collections.abc import Iterable
from typing import Any

from confide.policy.findings import Findings
from confide.policy.node import DEPTH_LIMIT, NODES_LIMIT, Block, Leaf, Listing, Node, UnreadableError, plain_leaf
from confide.privacy.limits import LONGEST_POLICY


class _Open:
    """A list or a mapping whose end has not come yet."""

    def __init__(self, line: int, anchor: str | None, mapping: bool) -> None:
        self.line, self.anchor, self.mapping = line, anchor, mapping
        self.size = 1
        self.items: list[Node] = []
        self.entries: dict[str, Node] = {}
        self.key_lines: dict[str, int] = {}
        self.key: str | None = None
        self.skip = False


def compose(text: str, findings: Findings) -> Node | None:
    """The tree of a YAML text, or None when there is nothing in it. Duplicate keys go to the findings."""
    if len(text) > LONGEST_POLICY:
        raise UnreadableError(f"the text is longer than {LONGEST_POLICY // 2**20} MB", "a policy is a short file")
    # Loaded when a text is read: everything that is given a dict, or holds a policy already, goes without it.
    import yaml  # noqa: PLC0415

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Composer(findings).compose(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        advice = "indent with spaces, not tabs" if "token" in what else "check brackets, quotes, colons and indentation"
        raise UnreadableError(f"not valid YAML: {what}", advice, mark.line + 1 if mark is not None else None) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UnreadableError(
            "there is a character that no text file has", "save the file as UTF-8 text", line
        ) from None


class _Composer:
    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.root: Node | None = None
        self.documents = 0
        self.size = 0

    def compose(self, events: Iterable[Any]) -> Node | None:
        for event in events:
            line = event.start_mark.line + 1
            if getattr(event, "tag", None) is not None:
                raise UnreadableError(f"the tag {event.tag!r} is not allowed", "leave the tag out", line)
            match type(event).__name__:
                case "DocumentStartEvent":
                    self.documents += 1
                    if self.documents > 1:
                        raise UnreadableError("a second document begins", "keep one policy in one file", line)
                case "ScalarEvent":
                    self._scalar(event, line)
                case "AliasEvent":
                    if event.anchor not in self.anchors:
                        raise UnreadableError(f"nothing is named &{event.anchor}", "write the value out", line)
                    node, size = self.anchors[event.anchor]
                    self._place(node, size, line)
                case "SequenceStartEvent" | "MappingStartEvent":
                    mapping = type(event).__name__ == "MappingStartEvent"
                    if self._expects_key():
                        raise UnreadableError("a key must be a single word", "a ':' or '?' is out of place", line)
                    if len(self.stack) >= DEPTH_LIMIT:
                        raise UnreadableError(f"nested more than {DEPTH_LIMIT} deep", "a policy is flat", line)
                    self.stack.append(_Open(line, event.anchor, mapping))
                case "SequenceEndEvent" | "MappingEndEvent":
                    self._close()
        return self.root

    def _expects_key(self) -> bool:
        return bool(self.stack) and self.stack[-1].mapping and self.stack[-1].key is None

    def _scalar(self, event: Any, line: int) -> None:
        if self._expects_key():
            self._key(event.value, line)
            return
        leaf = plain_leaf(event.value, line) if event.implicit[0] else Leaf(event.value, event.value, line)
        if event.anchor is not None:
            self.anchors[event.anchor] = (leaf, 1)
        self._place(leaf, 1, line)

    def _key(self, key: str, line: int) -> None:
        block = self.stack[-1]
        block.key, block.skip = key, key in block.entries
        if block.skip:
            path = (*(part for level in self.stack[:-1] for part in self._step(level)), key)
            first = block.key_lines[key]
            self.findings.add(path, f"the key {key!r} is given twice", f"it stands on line {first} already", line)
        else:
            block.key_lines[key] = line

    @staticmethod
    def _step(level: _Open) -> tuple[str | int, ...]:
        return (level.key or "",) if level.mapping else (len(level.items),)

    def _place(self, node: Node, size: int, line: int, added: int | None = None) -> None:
        self.size += size if added is None else added
        if self.size > NODES_LIMIT:
            raise UnreadableError("the aliases expand to far more than a policy can hold", "write it out", line)
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        parent.size += size
        if not parent.mapping:
            parent.items.append(node)
            return
        if parent.key is None:  # an alias in the place of a key
            raise UnreadableError("a key must be a single word", "write the key out", line)
        if not parent.skip:
            parent.entries[parent.key] = node
        parent.key = None

    def _close(self) -> None:
        done = self.stack.pop()
        node: Node = (
            Block(done.entries, done.line, done.key_lines) if done.mapping else Listing(tuple(done.items), done.line)
        )
        if done.anchor is not None:
            self.anchors[done.anchor] = (node, done.size)
        self._place(node, done.size, done.line, added=1)
