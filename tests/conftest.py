"""Set up every test run: hypothesis profiles, and a seed that the header prints and a rerun accepts."""

import os
import random

import pytest
from hypothesis import HealthCheck, settings

# No deadline: a shared machine has pauses that say nothing about the code; benchmarks judge speed. `print_blob` makes a
# failure print the decorator that repeats it alone.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile(
    "thorough", settings.get_profile("default"), max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(tryfirst=True)  # before hypothesis reads its option
def pytest_configure(config: pytest.Config) -> None:
    """Choose a seed where none was asked for, so that one line in the header is enough to repeat the run."""
    if config.getoption("--hypothesis-seed", default=None) is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    """Print the seed of all random tests."""
    return f"seed: repeat with --hypothesis-seed={config.getoption('--hypothesis-seed')}"
