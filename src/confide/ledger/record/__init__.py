"""What a ledger says: terms, entries, the chain of them, and how it is added up again."""
