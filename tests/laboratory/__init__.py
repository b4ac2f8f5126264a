"""Attacks on the guarantee as a whole: neighbours, faults, mutants, storages. Short here, long in `make audit`."""
