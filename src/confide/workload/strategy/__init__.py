"""What to measure so that what is asked comes out best: strategies as exact integer matrices. Public facts only.

A strategy K is measured as K·x plus independent noise, x the counts of a column's cells; an answer q·x is estimated as
q·K⁺·(K·x + noise), so its noise is known before anything is measured ([Li2015]). Each strategy is a module and a line
in `registry`.
"""
