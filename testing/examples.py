"""Number of examples of property tests: all of them, or a fifth in the fast tests."""

from hypothesis import settings

FAST = "fast"
"""The Hypothesis profile of `make test-fast`; `make test` runs the default one."""

_DEFAULT = "default"

_DEFAULT_EXAMPLES = 100
_FAST_EXAMPLES = 20


def register_profiles() -> None:
    """Load a default profile without deadlines; register what `--hypothesis-profile fast` selects.

    An example that takes long on a busy machine is no failure. Where Hypothesis has recognized a
    CI, its own profile stays: it has no deadlines either.
    """
    settings.register_profile(_DEFAULT, deadline=None)
    settings.register_profile(FAST, deadline=None, max_examples=_FAST_EXAMPLES)
    if settings.get_current_profile_name() == _DEFAULT:
        settings.load_profile(_DEFAULT)


def examples(count: int) -> int:
    """Return the number of examples of a test that runs `count` of them in `make test`.

    A number in a test's own settings overrides that of the profile, so it is scaled here.
    """
    is_fast = settings.get_current_profile_name() == FAST
    return max(1, count * _FAST_EXAMPLES // _DEFAULT_EXAMPLES) if is_fast else count
