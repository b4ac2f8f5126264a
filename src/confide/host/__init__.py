"""Where the program runs: processes that fork, servers that fall silent, and what must be given back to the system."""
