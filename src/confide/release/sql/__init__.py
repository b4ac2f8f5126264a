"""Questions of bounded tables: plan, noise and answer."""
