"""How much one row or unit changes a join, and what is left of it when that is cut."""
