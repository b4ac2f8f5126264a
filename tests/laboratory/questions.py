"""Random questions of every kind that one text can be, over the worlds that engines are tried in."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.engine.worlds import Asker, World

_TWO = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT", "REGR_AVGX")
_OF_KEYS = (
    "SELECT kind, AVG(c) AS v0, COUNT(*) AS v1 FROM (SELECT pid, kind, COUNT(*) AS c FROM visit{} GROUP BY pid, kind) "
    "AS i GROUP BY kind",
    "SELECT kind, SUM(c) AS v0 FROM (SELECT pid, kind, SUM(cost) AS c FROM visit{} GROUP BY pid, kind) AS i "
    "GROUP BY kind",
    "SELECT month, AVG(c) AS v0 FROM (SELECT pid, DATE_TRUNC('month', day) AS month, COUNT(*) AS c FROM visit{} "
    "GROUP BY pid, month) AS i GROUP BY month",
    "SELECT c, COUNT(*) AS v0 FROM (SELECT pid, COUNT(*) AS c FROM visit{} GROUP BY pid) AS i GROUP BY c",
    "SELECT kind, SUM(c) / COUNT(*) AS v0 FROM (SELECT pid, kind, COUNT(*) AS c FROM visit{} GROUP BY pid, kind) AS i "
    "GROUP BY kind",
)
"""One number for each unit and key."""


class Writer(Asker):
    """Also statistics of two numbers, truth of conditions, values that are counted once; and whole texts of each kind:
    several tables at once, arithmetic on released rows, numbers of one question in another.
    """

    def __init__(self, world: World, rng: Random) -> None:
        super().__init__(world, rng)
        self.world = world
        self.by_key = str(world.policy.unit) != "row"

    def aggregate(self) -> str:
        rng = self.rng
        if rng.random() < 0.7:
            return super().aggregate()
        if rng.random() < 0.5:
            return f"{rng.choice(_TWO)}({self.number(1)}, {self.number(1)})"
        once = f"{rng.choice(['SUM', 'AVG'])}(DISTINCT {self._one('number') or self.number()})"
        return rng.choice([f"{rng.choice(['BOOL_AND', 'BOOL_OR'])}({self.predicate()})", once])

    def any_question(self) -> str:
        """A text of any kind."""
        forms: list[Callable[[], str]] = [
            self.question, self.question, self.question, self.question, self.several, self.rolled, self.outer,
            self.with_two, self.united, self.windowed, self.best, self.beside, self.above, self.commonest,
            self.overlapping, self.named,
        ]  # fmt: skip
        if self.by_key:
            forms.append(self.of_keys)
        return self.rng.choice(forms)()

    def several(self) -> str:
        """Several tables of counts, of one table of rows."""
        rng, asker = self.rng, self._of_people()
        options = ["person.sex", "person.kids", "person.member", "BIN(person.age, 40)", "BIN(person.level, 50)"]
        keys = rng.sample([*options, "BIN(person.born, 20)"], rng.choice([1, 2, 2, 3]))
        listed = ", ".join(keys)
        sets = rng.choice([f"ROLLUP({listed})", f"CUBE({listed})", f"GROUPING SETS (({listed}), ({keys[0]}), ())"])
        return f"SELECT {listed}, COUNT(*) AS v0 FROM person{asker._where()} GROUP BY {sets}"

    def rolled(self) -> str:
        """Several tables of any numbers."""
        rng, asker = self.rng, self._of_people()
        listed = ", ".join(rng.sample(["person.sex", "person.kids", "BIN(person.age, 40)"], rng.choice([1, 2])))
        number, condition = asker.number(1), asker.predicate(1)
        values = rng.sample(
            [
                "COUNT(*)", f"SUM({number})", f"AVG({number})", f"COUNT(*) FILTER (WHERE {condition})",
                f"SUM({number}) FILTER (WHERE {condition})", f"MAX({number})", "GROUPING(person.sex)",
                asker.aggregate(),
            ],
            rng.choice([1, 1, 2, 3]),
        )  # fmt: skip
        if "person.sex" not in listed:
            values = [value.replace("GROUPING(person.sex)", "COUNT(*)") for value in values]
        shown = ", ".join(f"{value} AS v{place}" for place, value in enumerate(values))
        sets = rng.choice([f"ROLLUP({listed})", f"CUBE({listed})"])
        return f"SELECT {listed}, {shown} FROM person{asker._where()} GROUP BY {sets}"

    def commonest(self) -> str:
        """The commonest value of what makes groups."""
        mode = self.rng.choice(["MODE({})", "MODE() WITHIN GROUP (ORDER BY {})"])
        what = self._one("category") or self._one("flag") or f"BIN({self._one('number') or '1'}, 20)"
        value = mode.format(self.rng.choice([what, f"BIN({self._one('number') or '1'}, 50)"]))
        if self.rng.random() < 0.4:
            return f"SELECT {value} AS v0 FROM {self.clause}{self._where()}"
        return self.grouped(value, "COUNT(*)")

    def overlapping(self) -> str:
        """Many counts, or sums of one column, whose conditions overlap."""
        rng, number = self.rng, self._one("number") or "1"
        conditions = [self.predicate(1) for _ in range(rng.choice([2, 3, 5]))] + [f"{number} > 3", f"{number} > 10"]
        sums = [f"SUM({number}) FILTER (WHERE {own})" for own in conditions]
        counts = [f"COUNT(*) FILTER (WHERE {own})" for own in conditions]
        values = rng.choice([counts, [*counts, "COUNT(*)"], sums, [*sums, f"SUM({number})"], [*counts, *sums[:2]]])
        if rng.random() < 0.3:
            return self.grouped(*values)
        shown = ", ".join(f"{value} AS v{place}" for place, value in enumerate(values))
        return f"SELECT {shown} FROM {self.clause}{self._where()}"

    def named(self) -> str:
        """Released numbers beside rows of a public table."""
        rng, asker = self.rng, self._of_people()
        inner = f"SELECT person.region AS region, {asker.aggregate()} AS n FROM person{asker._where()} GROUP BY region"
        joined = rng.choice(["JOIN", "LEFT JOIN"])
        shown = rng.choice(["i.n", "i.n / area.weight", "i.n * area.weight"])
        return (
            f"SELECT i.region, area.weight, {shown} AS v0 FROM ({inner}) AS i {joined} area ON area.region = i.region"
        )

    def grouped(self, *values: str) -> str:
        """One row for each key k0."""
        key = self._one("category") or self._one("flag") or f"BIN({self._one('number') or '1'}, 20)"
        shown = ", ".join(f"{value} AS v{place}" for place, value in enumerate(values))
        return f"SELECT {key} AS k0, {shown} FROM {self.clause}{self._where()} GROUP BY {key}"

    def outer(self) -> str:
        rng = self.rng
        inner = self.grouped(self.aggregate(), "COUNT(*)")
        shown = rng.choice(
            [
                "AVG(v1) AS m, MAX(v1) AS x, COUNT(*) FILTER (WHERE v1 > 3) AS c",
                "SUM(v0) AS s, MIN(v0) AS x",
                "SUM(v0 * v1) / SUM(v1) AS w",
                "STDDEV(v1) AS d, MEDIAN(v1) AS e",
            ]
        )
        return f"SELECT {shown} FROM ({inner}) AS i{rng.choice(['', ' WHERE v1 > 2'])}"

    def with_two(self) -> str:
        key = self._one("category") or self._one("flag")
        if key is None:
            return self.outer()
        one, two = (
            f"SELECT {key} AS k0, {value} AS n FROM {self.clause}{self._where()} GROUP BY {key}"
            for value in (self.aggregate(), "COUNT(*)")
        )
        shown = self.rng.choice(["one.n / NULLIF(two.n, 0)", "one.n - two.n", "LEAST(one.n, two.n)", "one.n > two.n"])
        joined = self.rng.choice(["JOIN", "LEFT JOIN"])
        return f"WITH one AS ({one}), two AS ({two}) SELECT k0, {shown} AS d FROM one {joined} two USING (k0)"

    def united(self) -> str:
        key = self._one("category")
        if key is None or "kids" in key:
            return self.outer()
        many = f"SELECT {key} AS k0, {{}} AS n FROM {self.clause}{self._where()} GROUP BY {key}"
        value = self.rng.choice(["COUNT(*)", self.aggregate()])
        return f"{many.format(value)} UNION ALL SELECT 'all', {value} FROM {self.clause}{self._where()}"

    def windowed(self) -> str:
        value = self.rng.choice(["COUNT(*)", self.aggregate()])
        window = self.rng.choice(
            [
                "100 * COUNT(*) / SUM(COUNT(*)) OVER ()", "RANK() OVER (ORDER BY {} DESC)",
                "ROW_NUMBER() OVER (ORDER BY {})", "SUM(COUNT(*)) OVER (ORDER BY k0)", "LAG({}) OVER (ORDER BY k0)",
                "{} - AVG({}) OVER ()", "NTILE(2) OVER (ORDER BY {})",
                "MAX({}) OVER (ORDER BY k0 ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            ]
        ).replace("{}", value)  # fmt: skip
        return self.grouped(window, "COUNT(*)")

    def best(self) -> str:
        value = self.rng.choice(["COUNT(*)", self.aggregate()])
        chosen = self.rng.choice(["ROW_NUMBER()", "RANK()"])
        return f"{self.grouped(value)} QUALIFY {chosen} OVER (ORDER BY {value} DESC) <= 2"

    def beside(self) -> str:
        """A number of the same rows among those of the answer."""
        value = self.rng.choice(["COUNT(*)", f"AVG({self._one('number') or '1'})"])
        return self.grouped(f"{value} - (SELECT {value} FROM {self.clause})")

    def above(self) -> str:
        """Rows above a number that is asked for first."""
        column = self._one("number")
        if column is None or self.clause.startswith("("):
            return self.outer()
        what = self.rng.choice([f"AVG({column})", f"MEDIAN({column})", f"SUM({column}) / COUNT(*)"])
        return (
            f"SELECT {self.aggregate()} AS v0 FROM {self.clause} "
            f"WHERE {column} {self.rng.choice(['>', '<='])} (SELECT {what} FROM {self.clause})"
        )

    def of_keys(self) -> str:
        return self.rng.choice(_OF_KEYS).format(self.rng.choice(["", " WHERE cost > 3", " WHERE kind <> 'a'"]))

    def of_population(self) -> str:
        """Means and shares of rows."""
        return self._of_people().shares() if self.rng.random() < 0.9 else self.shares()

    def _of_people(self) -> "Writer":
        return Writer(replace(self.world, sources=(("person", ("person",)),)), self.rng)

    def shares(self) -> str:
        column, key = self._one("number") or "1", self._one("category") if self.rng.random() < 0.5 else None
        shown = self.rng.choice(
            [
                f"AVG({column}) AS v0",
                f"COUNT(*) FILTER (WHERE {self.predicate()}) / COUNT(*) AS v0",
                f"AVG({column}) AS v0, AVG(CASE WHEN {self.predicate()} THEN 1 ELSE 0 END) AS v1",
                f"AVG({column}) FILTER (WHERE {self.predicate()}) - AVG({column}) AS v0",
            ]
        )
        keys = f"{key} AS k0, " if key else ""
        return f"SELECT {keys}{shown} FROM {self.clause}{self._where()}" + (f" GROUP BY {key}" if key else "")

    def _where(self) -> str:
        conditions = [self.predicate(1)] if self.rng.random() < 0.4 else []
        if self.partners and self.rng.random() < 0.25:
            conditions.append(self.rng.choice(self.partners))
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""
