"""A question as people write it, turned into the one form that is bound: no row is read and no meaning changes."""

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Policy
from confide.query.rewrite.aggregate_names import named_aggregates
from confide.query.rewrite.constants import computed_days
from confide.query.rewrite.joined_form import joined_form
from confide.query.rewrite.rows_of_units import rows_of_units
from confide.query.rewrite.units_by_key import units_by_key
from confide.query.rewrite.without_partner import without_partner
from confide.query.scope import Catalog


def plain_form(select: exp.Select, policy: Policy, catalog: Catalog) -> exp.Select:
    """Aggregates by one name each, constants computed, inner queries that filter written out, rows without a
    partner as NOT EXISTS, and joins explicit;
    itself, if it is so already.
    """
    try:
        plain = without_partner(computed_days(named_aggregates(select)))
        explicit = joined_form(rows_of_units(plain, policy), policy, catalog)
        return units_by_key(rows_of_units(explicit, policy), policy)
    except RecursionError:
        raise QueryError("the query is nested too deep; write it flatter") from None
