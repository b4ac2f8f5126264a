"""SQL → a bounded question. Public facts only: the text and the policy."""

from confide.query.bind import bind
from confide.query.question import Measure, Question
from confide.query.scope import Catalog
from confide.query.tree import Summary

__all__ = ["Catalog", "Measure", "Question", "Summary", "bind"]
