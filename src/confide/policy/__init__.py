"""Policies: what is public, who is protected, and how much may be spent."""

from confide.policy.column import Category, Column, Date, Identifier, Number, Text, Unbounded
from confide.policy.policy import Policy, load
from confide.policy.table import Contribution, KeyUnit, ReferenceStep, RowUnit, Table, Unit

__all__ = [
    "Category",
    "Column",
    "Contribution",
    "Date",
    "Identifier",
    "KeyUnit",
    "Number",
    "Policy",
    "ReferenceStep",
    "RowUnit",
    "Table",
    "Text",
    "Unbounded",
    "Unit",
    "load",
]
