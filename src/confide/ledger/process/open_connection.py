"""What a ledger holds open: a connection and an anchor, used by one thread at a time, and not across a fork."""

from typing import Any, Generic, Protocol, TypeVar
from weakref import finalize

from confide.errors import LedgerError
from confide.host.fork import close_with, keep_across_forks, leave_open
from confide.ledger.process.anchor import Anchor
from confide.ledger.process.turn import Turns


class _Closing(Protocol):
    def close(self) -> None: ...


Held = TypeVar("Held", bound=_Closing)


class Holding(Generic[Held]):
    """Both are opened when first needed, by whoever takes a turn, and closed once and for all."""

    def __init__(self, name: str, timeout: float, connection: Held | None = None) -> None:
        self._turns = Turns(name, timeout)
        self._name = name
        self._connection: Held | None = None
        self._closing: finalize[..., Any] | None = None
        if connection is not None:
            self._keep(connection)
        self._anchor: Anchor | None = None
        self._closed = False
        keep_across_forks(self)

    def require_open(self) -> None:
        if self._closed:
            raise LedgerError(f"the ledger {self._name} was closed")

    def close(self) -> None:
        self.hold()
        try:
            self._closed = True
            self._drop()
            if self._anchor is not None:
                self._anchor.close()
                self._anchor = None
        finally:
            self.release()

    def hold(self) -> None:
        self._turns.hold()

    def release(self) -> None:
        self._turns.release()

    def abandon(self) -> None:
        """On the far side of a fork: forget the connection without closing it, which could disturb its owner."""
        leave_open(self._connection)
        self._connection = self._closing = None
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None
        self._turns.forget()

    def _keep(self, connection: Held) -> Held:
        """Hold a connection; if nobody closes it, it is closed when nobody holds the ledger any more."""
        self._connection = connection
        self._closing = close_with(self, connection.close)
        return connection

    def _drop(self) -> None:
        closing, self._connection, self._closing = self._closing, None, None
        if closing is not None:
            closing()
