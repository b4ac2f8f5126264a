"""A plugin of pytest: failing examples are reported as they were found. A mutant need not be caught beautifully."""

import pytest
from hypothesis import Phase, settings


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    current = settings.get_profile(settings.get_current_profile_name())
    settings.register_profile("unshrunk", current, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("unshrunk")
