"""Per-query deciders: may a synthetic answer be used for this question? Pure; nothing here reads data."""
