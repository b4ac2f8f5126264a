"""Makes the pictures of docs/gallery.md: runs its code, and keeps what each example calls `picture`.

python -m bench.gallery [FOLDER]     in docs/pictures, or as PNG in another folder to look at
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "gallery.md"
_PART = re.compile(r"^```python\n(.*?)^```$|!\[[^\]]*\]\((pictures/[^)]+)\)", re.MULTILINE | re.DOTALL)


def main() -> None:
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    names: dict[str, Any] = {"__name__": "gallery"}
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for match in _PART.finditer(PAGE.read_text()):
            if match[1] is not None:
                exec(compile(match[1], str(PAGE), "exec"), names)
                continue
            kept = PAGE.parent / match[2] if folder is None else folder / Path(match[2]).with_suffix(".png").name
            names.pop("picture").save(kept)
            print(f"{kept.name}: {kept.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
