"""A question as people write it, turned into the one form that is bound: no row is read and no meaning changes."""

from sqlglot import exp

from confide.errors import QueryError
from confide.policy import Policy
from confide.query.rewrite.aggregate_names import named_aggregates
from confide.query.rewrite.constants import computed_days
from confide.query.rewrite.joined_form import joined_form
from confide.query.rewrite.plain_joins import plain_joins
from confide.query.rewrite.rows_of_units import rows_of_units
from confide.query.rewrite.unit_columns import unit_columns
from confide.query.rewrite.units_by_key import units_by_key
from confide.query.rewrite.units_that_pass import units_that_pass
from confide.query.rewrite.without_partner import without_partner
from confide.query.scope import Catalog


def plain_form(select: exp.Select, policy: Policy, catalog: Catalog) -> exp.Select:
    """Aggregates by one name each, constants computed, inner queries that filter written out, rows without a
    partner as NOT EXISTS, and joins explicit;
    itself, if it is so already.
    """
    try:
        plain = units_that_pass(plain_joins(without_partner(computed_days(named_aggregates(select)))), policy)
        explicit = joined_form(_one_row_each(plain, policy), policy, catalog)
        return units_by_key(_one_row_each(explicit, policy), policy)
    except RecursionError:
        raise QueryError("the query is nested too deep; write it flatter") from None


def _one_row_each(select: exp.Select, policy: Policy) -> exp.Select:
    return unit_columns(rows_of_units(select, policy), policy)
