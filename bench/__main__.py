"""Runs every benchmark of this folder, or those named on the command line."""

import sys
from importlib import import_module
from pathlib import Path

SLOW = {
    "joins_tpch",
    "microdata_tables",
    "microdata_large",
    "rap_rules",
    "rap_future",
    "synthesis_methods",
    "engine_growth",
    "workload_boxes",
    "workload_dpbench",
    "workload_engines",
}


def main() -> None:
    here = Path(__file__).parent
    names = sorted(path.stem for path in here.glob("*.py") if not path.stem.startswith("_"))
    wanted = sys.argv[1:] or [name for name in names if name not in SLOW]
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        sys.exit(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(names)}")
    for name in wanted:
        print(f"\n== {name} ==", flush=True)
        import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main()
