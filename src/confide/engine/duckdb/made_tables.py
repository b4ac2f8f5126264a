"""Any SQL over records that were made up: they are nobody's, and the database that holds them reaches nothing else."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import duckdb

from confide.engine.duckdb.loader import lock, settle
from confide.engine.sql.syntax import name
from confide.errors import QueryError

if TYPE_CHECKING:
    import pyarrow


def ask(tables: Mapping[str, "pyarrow.Table"], sql: str) -> "pyarrow.Table":
    """What a query finds in some tables. It may be any that only reads: the database is thrown away."""
    connection = duckdb.connect(":memory:")
    try:
        settle(connection)
        for label, table in tables.items():
            connection.register("made", table)
            connection.execute(f"CREATE TABLE {name(label)} AS SELECT * FROM made")
            connection.unregister("made")
        lock(connection)
        try:
            found = connection.sql(sql)
            if found is not None:
                return found.to_arrow_table()
        except duckdb.Error as error:
            raise QueryError(f"the records cannot answer this: {str(error).splitlines()[0]}") from None
        raise QueryError("the records answer what reads them: SELECT")
    finally:
        connection.close()
