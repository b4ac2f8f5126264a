"""Answers of a whole workload of counts from one measurement, each with its interval."""
