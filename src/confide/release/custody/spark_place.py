"""What a policy's `source` says of Spark: which one, and where on it each table is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from confide.errors import SourceError
from confide.policy import Policy
from confide.policy.file_kind import kind_of

_HERE = "spark"
_PREFIX = "spark:"
_ADDRESS = re.compile(r"(spark://|sc://|local($|\[))")
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(, *\d+)?\])?")


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """The master or address of Spark, None for the one of this process or a new one here; a place for each table.

    A place is a name in the catalogue or, if it is in `files`, a path to Parquet files.
    """

    master: str | None
    tables: Mapping[str, str]
    files: frozenset[str] = frozenset()


def spark_place(policy: Policy) -> SparkPlace | None:
    """Where a policy's data are on Spark; None if they are elsewhere."""
    source = policy.source
    if source is None:
        return None
    if isinstance(source, str):
        return _catalogue(source, policy) if is_spark(source) else None
    if not any(is_spark(address) for address in source.values()):
        return None
    return _each(source, policy)


def spark_path(source: str) -> str | None:
    """The files that `spark:PATH` names; None if a source is none of that kind."""
    path = source.removeprefix(_PREFIX)
    if not source.startswith(_PREFIX) or source.startswith("spark://"):
        return None
    return path if "/" in path or kind_of(path) == "parquet" else None


def named_tables(policy: Policy) -> SparkPlace:
    """Every table by its name in a given session."""
    return SparkPlace(None, {label: _quoted(label) for label in policy.tables})


def is_spark(address: str) -> bool:
    """Whether a source is on Spark."""
    return address == _HERE or address.startswith(_PREFIX) or _ADDRESS.match(address) is not None


def catalogue_of(source: str) -> tuple[str | None, str | None]:
    """The Spark whose catalogue a source is, `spark`, `spark:yarn`, `local[4]`, `sc://host?schema=clinic`, and the
    schema of it.
    """
    address, _, setting = source.partition("?")
    key, _, schema = setting.partition("=")
    if setting and (key != "schema" or not schema):
        raise SourceError(f"{address}?{key}: a source on Spark takes ?schema=NAME, or is written for each table")
    return _master(address), schema or None


def _catalogue(source: str, policy: Policy) -> SparkPlace:
    """One Spark, and its catalogue holds every table."""
    master, schema = catalogue_of(source)
    prefix = f"{'.'.join(map(_quoted, schema.split('.')))}." if schema else ""
    return SparkPlace(master, {label: prefix + _quoted(label) for label in policy.tables})


def _each(source: Mapping[str, str], policy: Policy) -> SparkPlace:
    """For each table a path or name: `spark:PATH`, `spark:NAME`, or an address with ?parquet=PATH or ?table=NAME."""
    masters: dict[str | None, str] = {}
    tables: dict[str, str] = {}
    files = set()
    for label in policy.tables:
        written = source.get(label, "")
        if not is_spark(written):
            raise SourceError(f"some tables are on Spark, so all must be: write {label}: spark:PATH or spark:NAME")
        address, _, setting = written.partition("?")
        key, _, place = setting.partition("=")
        if not setting and written.startswith(_PREFIX) and not written.startswith("spark://"):
            address, place = _HERE, written.removeprefix(_PREFIX)
            key = "table" if spark_path(written) is None else "parquet"
        if key not in ("parquet", "table") or not place:
            raise SourceError(f"{label}: Spark is named, but no table of it; write ?parquet=PATH or ?table=NAME")
        masters.setdefault(_master(address), label)
        tables[label] = _path(policy, place) if key == "parquet" else place
        if key == "parquet":
            files.add(label)
    if len(masters) > 1:
        first, second, *_ = masters.values()
        raise SourceError(f"{first} and {second} are on different Sparks; all tables must be on one")
    return SparkPlace(next(iter(masters)), tables, frozenset(files))


def _master(address: str) -> str | None:
    if address == _HERE:
        return None
    master = address if _ADDRESS.match(address) else address.removeprefix(_PREFIX)
    if master.startswith(("/", ".")):
        raise SourceError(f"{master} is a path, and names no Spark; write of which table: {{TABLE: spark:{master}}}")
    if master.startswith("local[") and not _LOCAL.fullmatch(master):
        raise SourceError(f"{master} is no Spark here; write local[4] for four cores, or local[*] for all")
    return master


def _path(policy: Policy, place: str) -> str:
    """A path beside the policy, if there is such a file or folder here; Spark may see another disk."""
    local = policy.base / place
    return str(local.resolve()) if "://" not in place and local.exists() else place


def _quoted(label: str) -> str:
    return "`" + label.replace("`", "``") + "`"
