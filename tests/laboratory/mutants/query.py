"""Sensitivities, relations and what a question may say."""

from tests.laboratory.mutation import Mutant

MUTANTS = (
    Mutant("a product spans its first corners", "query/number.py", "corners = (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)", "corners = (a.low * b.low, a.high * b.high)", "tests/query/test_number.py::test_a_computed_number_stays_in_its_span"),
    Mutant("a sum spans its larger part", "query/number.py", "span_of(a.low + b.low, a.high + b.high, a.grain, a.nullable or b.nullable)", "span_of(min(a.low, b.low), max(a.high, b.high), a.grain, a.nullable or b.nullable)", "tests/query/test_number.py::test_a_computed_number_stays_in_its_span"),
    Mutant("a sum of what may be unknown is always known", "query/number.py", "span_of(a.low + b.low, a.high + b.high, a.grain, a.nullable or b.nullable)", "span_of(a.low + b.low, a.high + b.high, a.grain, False)", "tests/query/test_number.py::test_a_computed_number_stays_in_its_span"),
    Mutant("sums of any width", "query/number.py", "WIDEST = 1 << 82", "WIDEST = 1 << 200", "tests/query/test_number.py::test_what_128_bits_do_not_sum_is_refused[82]"),
    Mutant("undeclared keys under a pure budget", "query/grouping.py", "        if scope.policy.budget.pure:\n", "        if False:\n", "tests/release/test_session.py::test_a_pure_budget_refuses_unknown_keys"),
    Mutant("an id makes groups", "query/grouping.py", "    if isinstance(column, Identifier):\n        raise QueryError(", "    if isinstance(column, Identifier):\n        return UnknownKey(\"\", subject)\n        raise QueryError(", "tests/threats/test_query.py::test_e25_an_id_is_neither_a_filter_nor_a_group"),
    Mutant("an aggregate of a unit as wide as it is asked for", "query/unit_aggregate.py", "least, most = max(span.low, int(low)), min(span.high, int(high))", "least, most = int(low), int(high)", "tests/query/test_bind.py::test_bounds_never_widen_what_the_policy_allows"),
    Mutant("units of a join are one", "query/conjunction.py", "    return tuple(found)\n\n\ndef sources_of", "    return tuple(found[:1])\n\n\ndef sources_of", "tests/release/test_join_neighbours.py::test_one_unit_changes_no_more_than_its_level"),
    Mutant("copies of a table change apart", "query/conjunction.py", "return tuple(tuple(p for p in self.private if self.occurrences[p].table == table) for table in tables)", "return tuple((p,) for p in self.private)", "tests/query/test_conjunction.py::test_copies_of_a_table_go_together"),
    Mutant("some columns take part in the order of rows", "query/relation.py", "        for _, column in sorted(source.columns.items())\n", "        for _, column in sorted(source.columns.items())[:1]\n", "tests/query/test_bind.py::test_every_column_takes_part_in_the_order_of_a_units_rows"),
    Mutant("a text with half a character", "query/parse.py", "if \"\\x00\" in text or", "if False and", "tests/query/test_parse.py::test_characters_that_no_database_takes_are_refused"),
    Mutant("a row is owned along one of two ways", "policy/structure.py", "        elif len(ways) > 1:\n", "        elif len(ways) > 9:\n", "tests/policy/test_structure.py::test_a_row_of_two_people_is_refused"),
    Mutant("rows that belong to nobody", "policy/structure.py", "        if not ways:\n", "        if ways is None:\n", "tests/policy/test_structure.py::test_private_rows_must_belong_to_somebody"),
    Mutant("a reference to another column of the unit's table", "policy/structure.py", "if to_table in leading and (to_table != unit.table or to_column == unit.column):", "if to_table in leading:", "tests/policy/test_structure.py::test_a_reference_to_another_id_of_the_units_table_does_not_help"),
    Mutant("how many rows units have is public", "policy/structure.py", "if table.rows == \"public\" and (table.name != unit.table or table.at_most.rows != 1):", "if False:", "tests/policy/test_structure.py::test_where_the_number_of_rows_may_be_public[person-2-False]"),
    Mutant("whoever is not named has no cap", "policy/analyst.py", "    if names and ANYBODY_ELSE not in names:\n", "    if False:\n", "tests/policy/test_analyst.py::test_caps_name_everybody"),
    Mutant("another spelling has another cap", "policy/analyst.py", "    if meant is not None:\n", "    if False:\n", "tests/policy/test_analyst.py::test_another_spelling_is_refused_and_the_right_one_told[Ann]"),
)  # fmt: skip
