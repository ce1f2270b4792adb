"""Number of examples of property tests: all of them, or a fifth in the fast tests."""

from hypothesis import settings

FAST = "fast"
"""The Hypothesis profile of `make test-fast`; `make test` runs the default one."""

_DEFAULT_EXAMPLES = 100
_FAST_EXAMPLES = 20


def register_profiles() -> None:
    """Register the profile that `--hypothesis-profile fast` selects."""
    settings.register_profile(FAST, max_examples=_FAST_EXAMPLES)


def examples(count: int) -> int:
    """Return the number of examples of a test that runs `count` of them in `make test`.

    A number in a test's own settings overrides that of the profile, so it is scaled here.
    """
    is_fast = settings.get_current_profile_name() == FAST
    return max(1, count * _FAST_EXAMPLES // _DEFAULT_EXAMPLES) if is_fast else count
