"""Whether the synthetic answer of a question may be used."""
