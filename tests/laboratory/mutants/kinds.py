"""One change for each kind of mistake that once went unnoticed and has no other here."""

from tests.laboratory.mutation import Mutant

MUTANTS = (
    Mutant("entities without a set are left out", "mechanism/join/packing.py", "size = max(int(self.entities.max(initial=-1)) + 1, 0 if self.kinds is None else len(self.kinds))", "size = int(self.entities.max(initial=-1)) + 1", "tests/laboratory/test_one_outcome.py::test_a_node_in_no_triangle_is_nothing_that_leaves"),
    Mutant("sums that wrap around", "mechanism/noise/limbs.py", "fit = high.dtype != object and int(high.max(initial=0)) <= MOST >> BITS", "fit = high.dtype != object", "tests/mechanism/noise/test_limbs.py"),
    Mutant("scales of any size", "mechanism/noise/law.py", "    if scale > largest:\n", "    if False:\n", "tests/mechanism/noise/test_law.py"),
    Mutant("shifts of any size", "mechanism/noise/law.py", "    if not shift <= LARGEST_SHIFT:\n", "    if False:\n", "tests/mechanism/noise/test_law.py"),
    Mutant("a question of any size", "query/room.py", "        if self.left < 0:\n", "        if False:\n", "tests/query/test_nesting.py::test_what_is_repeated_counts_as_often_as_it_is_written_out"),
    Mutant("days in texts are cast strictly", "engine/sql/canonical_text.py", "return case([(matches(value, _DATED), f\"TRY_CAST(TRIM(SUBSTRING(TRIM({value}), 1, 10)) AS DATE)\")])", "return cast(value, \"DATE\")", "tests/engine/test_files.py::test_an_odd_value_in_a_text_file_is_a_value_that_is_missing"),
    Mutant("whole floats of any size on Spark", "engine/spark/types.py", "return case([(f\"ABS({value}) <= {_double(str(_EXACT))}\", case([whole, (short, told)]))])", "return case([(f\"{value} = RINT({value})\", cast(cast(value, \"BIGINT\"), \"STRING\")), (short, told)])", "tests/engine/spark/test_types.py::test_no_float_fails_a_question"),
    Mutant("all files on Spark in the types of one", "engine/spark/parts.py", "        if (frame := _merged(spark, [self._where])) is not None:\n", "        if (frame := spark.read.parquet(self._where)) is not None:\n", "tests/engine/spark/test_parts.py::test_one_missing_value_in_one_file_changes_nothing_else"),
    Mutant("moments are days on PostgreSQL", "engine/postgres/types.py", "        case Date(), \"date\" | \"timestamp\":\n", "        case _, \"date\" | \"timestamp\":\n", "tests/engine/postgres/test_types.py::test_ids_are_told_apart"),
    Mutant("a charge that stands is called none", "ledger/durable.py", "{self._unsure if error.unconfirmed else self._sure}", "{self._sure}", "tests/ledger/test_durable.py::test_what_fails_after_the_commit_is_not_called_nothing"),
)  # fmt: skip
