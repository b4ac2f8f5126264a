"""What belongs to the custodian: sources, ledgers, their books, checks, and what was asked before."""
