"""How long texts may be and how much one request may say: the limits that people meet, listed in docs/limits.md.

All of them are held before anything is charged; the last ones refuse nothing, but choose another way to answer. Bounds
that a proof or a format needs stay where that is.
"""

from typing import Final

LONGEST_QUERY: Final = 20_000
"""Characters of a question, of a view with the question about it, and of each query of a workload."""
MOST_NESTED: Final = 30
"""Parentheses and CASEs in each other; the parser needs some twenty calls of Python for each, of a thousand it has."""
MOST_LEVELS: Final = 100
"""Of the parsed tree: a sum of so many terms, for example."""
MOST_PARTS: Final = 5_000
"""Of one question: numbers and conditions in its tree, written out."""
MOST_COLUMNS: Final = 200
MOST_MEASURED: Final = 600
"""Numbers in each group."""
MOST_KEYS: Final = 32
MOST_GROUPS: Final = 1_000_000
MOST_DERIVED_ROWS: Final = 20_000
"""Of a released table of which more is computed: outer queries, windows, functions."""
MOST_LISTED_ROWS: Final = 20_000
"""Of a public table that is joined to released numbers."""
MOST_FRAMED: Final = 2_000
"""Rows of a partition for which a window is made up to each row, or over a frame around it."""
MOST_SUMMED: Final = 2 * MOST_FRAMED**2
"""Rows of all frames of an answer together, in whatever windows: each is kept for itself."""
LONGEST_MADE: Final = 1_000
"""Letters of a text that is put together of keys and constants, in what is made of released rows."""
MOST_MADE: Final = 4_000_000
"""Letters of all texts that functions make there."""
MOST_INNER_QUESTIONS: Final = 50
"""Of one text: different ones."""
MOST_STATEMENTS: Final = 200
"""Of one text that holds several."""
MOST_INNER_NUMBERS: Final = 4
"""Of sub-queries in WHERE, which are released before the question that they stand in."""
MOST_COMMONEST: Final = 1_000
"""Values among which MODE looks for the commonest; with all groups no more than MOST_GROUPS."""
MOST_JOINED_GROUPS: Final = 1_000
"""Where one unit may change any number of joined rows."""
MOST_NUMBERS: Final = 10_000_000
"""Of an answer, ends of intervals included."""
MOST_TABLES: Final = 16
MOST_COMPARED: Final = 50
"""Pairs of columns that joins compare."""
LONGEST_PATTERN: Final = 256
MOST_WILDCARDS: Final = 10
"""Some databases try every place for each %, so that the time of a match grows with a power of their number."""
LONGEST_VIEW_NAME: Final = 60
MOST_SEARCHED: Final = 50
"""Measured numbers for which `within=` looks for an ε: each step of a search plans all of them."""
MOST_MARGINALS: Final = 500
"""Of microdata."""
MOST_VERDICTS: Final = 10_000
"""Of one call: queries of a list, and keys of a GROUP BY."""
MOST_PADDED: Final = 10_000
"""Marginals to which a history is padded."""

LONGEST_POLICY: Final = 4 * 2**20
"""Bytes of a file, characters of a text."""
LONGEST_ANALYST: Final = 200

LONGEST_LEDGER_NAME: Final = 256
"""Of an analyst, as a ledger keeps it."""
LONGEST_KEY: Final = 512
LONGEST_PURPOSE: Final = 100_000
LONGEST_REQUEST: Final = 2**20
"""Of a longer one the ledger keeps the digest."""
LONGEST_ANSWER: Final = 256 * 2**20
"""Bytes."""

MOST_COUNTS: Final = 256
"""Measured numbers of one question, for some of them to be measured together."""
MOST_ATOMS: Final = 128
"""Parts of rows that the conditions of one question make, for its counts to be measured together."""
MOST_OPTIMISED_ATOMS: Final = 96
"""Of these parts, for an optimised strategy to be looked for: some tenths of a second."""
