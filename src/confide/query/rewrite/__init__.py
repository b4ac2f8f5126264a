"""A question as people write it, turned into the one form that is bound: no row is read and no meaning changes."""

from confide.query.rewrite.plain_form import plain_form

__all__ = ["plain_form"]
