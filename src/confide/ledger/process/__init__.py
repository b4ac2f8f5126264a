"""How processes share a ledger: turns, signals, durable writes, the anchor."""
