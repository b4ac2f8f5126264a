"""How much memory this machine has."""

import os


def machine_bytes() -> int | None:
    """All of it; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
