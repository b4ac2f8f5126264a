"""One script per claim. `python -m bench` runs all of them; `python -m bench.query` runs one."""
