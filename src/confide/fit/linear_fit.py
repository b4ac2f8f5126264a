"""Linear programs, by HiGHS."""

import highspy
import numpy as np
from scipy import sparse

from confide.fit.cells import Floats


def linear_program(
    cost: Floats, columns: tuple[Floats, Floats], matrix: sparse.csc_array, rows: tuple[Floats, Floats]
) -> tuple[Floats, bool]:
    """min cost·x with columns and rows within their bounds: x, a vertex, and whether it is a solution."""
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(cost), matrix.shape[0]
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = columns
    program.row_lower_, program.row_upper_ = rows
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("solver", "simplex")
    solver.passModel(program)
    solver.run()
    return np.array(solver.getSolution().col_value), solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
