"""The catalogue of attacks: what is tried, the tests that hold against it, and what shows that they can fail.

A control is a mutant (by its name: a small wrong change of the source, which its test catches), or a test in which a
naive system falls for the attack.

python -m tests.laboratory.catalogue    the table of docs/audits.md
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    """One attack: tests without "tests/", controls as names of mutants or as tests."""

    name: str
    what: str
    held_by: tuple[str, ...]
    controls: tuple[str, ...]


_TEXTS = ("threats/test_query.py::test_refused",)
_BARE_FAILS = "threats/test_query.py::test_the_bare_database_fails_on_one_row_alone"
_BARE_ANSWERS = "threats/test_query.py::test_the_bare_database_answers"
_NAIVE_LEDGER = "ledger/test_controls.py::test_finds_a_naive_ledger_out"
_NAIVE_ENGINE = "engine/test_neighbours.py::test_a_careless_engine_is_caught"

CATALOGUE: tuple[Attack, ...] = (
    # --- kinds that worked once -------------------------------------------------------------------------------------
    Attack(
        "fresh noise for nothing",
        "an overflow in arithmetic on noisy numbers, or any failure after a charge, and the same question again",
        ("release/test_holdings.py::test_arithmetic_on_noisy_numbers_gives_no_free_noise",
         "laboratory/test_one_outcome.py::test_a_fault_at_any_step_is_the_one_failure",
         "cli/test_boundary.py::test_after_a_charge_nothing_is_named_at_all"),
        ("a failure is not an outcome", "a failure leaves as it is", "an outcome is given and not kept",
         "laboratory/test_one_outcome.py::test_a_failure_that_is_not_kept_is_noticed"),
    ),
    Attack(
        "keys that hash the data",
        "a dictionary of possible rows against keys, exports, file names",
        ("release/test_keys.py::test_the_same_request_has_another_key_in_another_ledger",
         "release/test_keys.py::test_equal_data_look_no_more_alike_than_others",
         "release/synthetic/test_request.py::test_no_part_of_a_key_is_printed"),
        ("a hash of data without a salt", "a name that is not sealed", "parts of a name run together"),
    ),
    Attack(
        "seeds that hash the data",
        "the start of a fit, known from a key",
        ("release/synthetic/test_request.py::test_the_seed_of_a_fit_is_drawn_and_has_nothing_to_do_with_the_data",),
        ("a seed from a key", "a seed that everybody knows"),
    ),
    Attack(
        "private numbers in an exception",
        "a node in no triangle: an index out of range, after the charge",
        ("laboratory/test_one_outcome.py::test_a_node_in_no_triangle_is_nothing_that_leaves",),
        ("entities without a set are left out",),
    ),
    Attack(
        "storage taken for meaning",
        "one missing or odd value makes floats or objects of a column: texts, order, hashes",
        ("laboratory/test_storages.py::test_values_mean_the_same_in_some_storages",
         "laboratory/test_storages.py::test_an_odd_value_changes_no_other",
         "engine/sql/test_bounding.py::test_a_row_that_changes_how_a_column_is_stored_changes_no_other_unit"),
        ("doubles as their engine writes them", "laboratory/test_storages.py::test_the_control_tells_storages_apart"),
    ),
    Attack(
        "integers that wrap",
        "totals beyond 2^63 in programs of shared rows",
        ("laboratory/test_integers.py::test_every_sum_in_numpy_has_a_bound",
         "mechanism/noise/test_law.py::test_totals_of_units_are_refused_before_they_are_read"),
        ("sums that wrap around",),
    ),
    Attack(
        "new nodes",
        "an edge to a node that was not there: rungs that are no ladder",
        ("mechanism/graph/test_pattern.py::test_rungs_are_a_ladder_and_bounds_are_smooth_with_new_nodes_too",),
        ("pairs without new nodes",
         "mechanism/graph/test_pattern.py::test_pairs_of_nodes_that_have_edges_would_not_do"),
    ),
    Attack(
        "equality that is not transitive",
        "a number with a grain beside a text id and an integer id",
        ("engine/sql/test_agreement.py::test_agreeing_is_one_relation_over_all_columns",
         "engine/sql/test_agreement.py::test_chains_of_equal_columns_are_bounded_by_their_residuals"),
        ("numbers of two grains as indices",),
    ),
    Attack(
        "a refusal that follows the data",
        "a star of so many leaves that its count is refused",
        ("mechanism/graph/test_ladder.py::test_no_hub_is_too_large",
         "mechanism/graph/test_ladder.py::test_what_passes_every_bound_is_cut_and_stays_a_ladder"),
        ("rungs as large as they come",),
    ),
    Attack(
        "coins that are not tossed",
        "far segments of the exponential mechanism have chance 0",
        ("mechanism/selection/test_exponential.py::test_neighbours_do_not_tell_far_segments_apart",
         "mechanism/selection/test_exponential.py::test_every_segment_is_accepted_with_exactly_its_chance"),
        ("far segments are never drawn",
         "mechanism/selection/test_exponential.py::test_a_coin_that_is_not_tossed_is_caught"),
    ),
    Attack(
        "an epsilon next to nothing",
        "scales and shifts beyond what arithmetic holds, after the charge",
        ("mechanism/noise/test_law.py::test_a_quantile_that_can_be_planned_can_be_measured",
         "mechanism/noise/test_law.py::test_a_sum_that_can_be_planned_can_be_measured",
         "laboratory/test_plan_and_answer.py::test_what_is_planned_is_answered"),
        ("scales of any size", "shifts of any size"),
    ),
    Attack(
        "texts that cost the planner",
        "constructs nested in each other, each of which doubles the work",
        ("query/test_nesting.py::test_each_construct_in_itself",
         "query/test_nesting.py::test_each_construct_in_some_others"),
        ("a question of any size", "a query of any length"),
    ),
    Attack(
        "budgets that begin anew",
        "one more row, a renamed policy, a mistyped ledger, another folder, a name without a cap",
        ("release/test_opening.py::test_one_more_row_finds_the_same_ledger",
         "release/test_opening.py::test_renamed_mistyped_and_from_elsewhere",
         "policy/test_analyst.py::test_caps_name_everybody"),
        ("a ledger is made by opening", "frames have a ledger beside the policy", "whoever is not named has no cap"),
    ),
    Attack(
        "forks",
        "two children that use one connection, cursor, lock or generator",
        ("release/test_fork.py::test_parent_and_children_each_get_their_own_answers",
         "release/test_fork.py::test_a_pool_of_forked_workers"),
        ("a fork shares its database",),
    ),
    Attack(
        "one odd value in a text file",
        "a word in a column of numbers refuses the file, and names its line",
        ("engine/test_files.py::test_an_odd_value_in_a_text_file_is_a_value_that_is_missing",
         "engine/test_files.py::test_where_a_text_file_is_broken_is_told_to_its_custodian_alone"),
        ("days in texts are cast strictly", "where a text file is broken is told to all"),
    ),
    Attack(
        "one odd value on Spark",
        "an infinite id, or a missing value in one file of many, fails every question after its charge",
        ("engine/spark/test_types.py::test_no_float_fails_a_question",
         "engine/spark/test_parts.py::test_one_missing_value_in_one_file_changes_nothing_else"),
        ("whole floats of any size on Spark", "all files on Spark in the types of one"),
    ),
    Attack(
        "types by the beginning of their names",
        "ids of numeric as doubles, moments as days, domains and arrays that are called like others",
        ("engine/postgres/test_types.py::test_ids_are_told_apart",
         "laboratory/test_server_storages.py::test_postgres"),
        ("moments are days on PostgreSQL",),
    ),
    Attack(
        "what is said of a charge",
        "nothing was charged, when it was; waits beyond what is promised; what is left open",
        ("ledger/test_durable.py::test_what_fails_after_the_commit_is_not_called_nothing",
         "ledger/test_durable.py::test_several_silent_addresses_take_no_longer_than_one",
         "release/test_left_open.py::test_frames_and_a_ledger_in_a_file"),
        ("a charge that stands is called none",),
    ),
    # --- known attacks ----------------------------------------------------------------------------------------------
    Attack("E01", "division by zero on one row", _TEXTS, (_BARE_FAILS,)),
    Attack("E03", "a cast that fails on one row", _TEXTS, (_BARE_FAILS,)),
    Attack("E04", "arithmetic that overflows on one row", _TEXTS, (_BARE_FAILS, "sums of any width")),
    Attack("E06", "functions that fail or never end", _TEXTS, (_BARE_FAILS,)),
    Attack(
        "E07", "NaN, infinities, 1e308", ("threats/test_engine.py::test_one_harmful_row_changes_nothing_but_integers",),
        ("threats/test_engine.py::test_without_clamping_such_a_row_would_show", "a NaN is the largest value"),
    ),
    Attack(
        "E09", "rows in other orders, more threads", ("threats/test_engine.py::test_e09_orders_and_threads",),
        ("engine/test_neighbours.py::test_an_engine_that_heeds_the_order_is_caught",
         "the order of a unit's rows as they lie"),
    ),
    Attack("E18", "random numbers, clocks, samples", _TEXTS, (_BARE_ANSWERS,)),
    Attack("E19", "statements that are no questions", _TEXTS, (_BARE_ANSWERS,)),
    Attack("E20", "files of the machine", _TEXTS, (_BARE_ANSWERS, "the database may read other files")),
    Attack("E21", "catalogues, statistics, row numbers", _TEXTS, (_BARE_ANSWERS,)),
    Attack(
        "E23", "huge and deep texts", ("threats/test_query.py::test_e23_huge_and_deep",), ("a query of any length",),
    ),
    Attack("E24", "values themselves", _TEXTS, (_BARE_ANSWERS,)),
    Attack(
        "E25", "one person by their id", ("threats/test_query.py::test_e25_an_id_is_neither_a_filter_nor_a_group",),
        (_BARE_ANSWERS, "an id makes groups"),
    ),
    Attack(
        "E27", "a join in which one unit matches very often",
        ("engine/sql/test_bounding.py::test_what_a_public_table_repeats_counts_towards_the_bound",),
        ("how often a table repeats a unit is forgotten", "bounds are never needed"),
    ),
    Attack(
        "M02", "decimals of answers",
        ("release/test_threats.py::test_released_sums_are_multiples_of_the_public_grain",),
        ("low bits of noise are left out",),
    ),
    Attack(
        "M04", "amounts that are none", ("privacy/test_amount.py::test_refuses_with_the_name_and_the_range",),
        ("true is an amount", "an infinite epsilon is an amount"),
    ),
    Attack(
        "M05", "a lower bound on epsilon from many runs",
        ("conformance/test_mechanism.py::test_mechanisms_conform",
         "trust/test_privacy.py::test_no_neighbours_differ_by_more_than_the_loss"),
        ("conformance/test_mechanism.py::test_the_audit_alone_catches_those_that_leak",
         "a noised answer with half its noise"),
    ),
    Attack(
        "M09", "a key that one unit holds", ("release/test_threats.py::test_a_key_that_one_unit_holds_is_never_shown",),
        ("a smaller threshold for keys", "keys are shown by their exact numbers"),
    ),
    Attack(
        "M11", "how often intervals hold",
        ("statistical/test_coverage.py::test_means_are_covered",
         "statistical/test_coverage.py::test_variances_are_covered"),
        ("an interval of one side on both", "a variance without the noise of its mean"),
    ),
    Attack(
        "M13", "a unit with ten thousand rows; rows of nobody",
        ("threats/test_engine.py::test_m13_rows_of_nobody_and_of_a_unit_with_ten_thousand",),
        ("bounds are never needed", "rows of nobody make a unit", _NAIVE_ENGINE),
    ),
    Attack(
        "M14", "a value of one unit that nobody declared",
        ("threats/test_engine.py::test_m14_a_value_of_one_unit_makes_no_group",),
        ("a value outside of a list makes a group",),
    ),
    Attack(
        "L01", "kill -9 at any time", ("ledger/test_kill.py::test_nothing_is_lost",),
        ("ledger/test_kill.py::test_a_ledger_that_tells_before_it_writes_is_found_out",),
    ),
    Attack(
        "L05", "a ledger that is cut or changed",
        ("ledger/test_damage.py::test_flipped_bits", "ledger/test_damage.py::test_truncated"),
        ("an altered answer is given out", "a replay does not check hashes"),
    ),
    Attack(
        "L06", "yesterday's ledger", ("ledger/test_damage.py::test_yesterdays_ledger_is_refused",),
        ("a ledger behind its anchor is taken",),
    ),
    Attack(
        "L08", "many clients race for the last unit of the budget",
        ("release/test_threats.py::test_two_sessions_race_for_the_last_unit",),
        (_NAIVE_LEDGER, "the budget is not checked"),
    ),
    Attack(
        "L10", "one key, many calls at once",
        ("release/test_threats.py::test_one_key_many_parallel_calls_one_charge_one_answer",),
        (_NAIVE_LEDGER, "a key that was paid for is paid again"),
    ),
    Attack(
        "L15", "tenths and thirds of a budget", ("privacy/test_amount.py::test_rounds_up_by_less_than_a_quantum",),
        ("a charge is rounded down", "a cap is rounded up"),
    ),
    Attack(
        "S07", "canaries in private rows",
        ("threats/test_engine.py::test_s07_canaries_stay_inside", "release/test_threats.py::test_no_canary_gets_out"),
        ("the words of a database leave it", "what a frame that fails says"),
    ),
)  # fmt: skip


def table() -> str:
    """The catalogue as a table in Markdown."""
    lines = ["| attack | what is tried | held by | red on |", "|---|---|---|---|"]
    for attack in CATALOGUE:
        tests = ", ".join(f"`{_function(test)}`" for test in attack.held_by)
        controls = ", ".join(f"`{_function(name)}`" if "::" in name else f"*{name}*" for name in attack.controls)
        lines.append(f"| {attack.name} | {attack.what} | {tests} | {controls} |")
    return "\n".join(lines)


def _function(test: str) -> str:
    return test.rpartition("::")[2]


if __name__ == "__main__":
    print(table())
