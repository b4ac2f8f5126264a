"""The table that an analyst gets: its numbers, its intervals, and how it is shown."""
