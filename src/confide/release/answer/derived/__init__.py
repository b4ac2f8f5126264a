"""Tables that are made of released ones: estimates, and intervals that hold for the exact answer of the same text."""
