"""Exact integers from statements: groups, cells, tallies, tables of counts, joins and graphs."""
