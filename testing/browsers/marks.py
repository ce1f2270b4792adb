"""Marks of tests that drive a browser."""

import pytest

from testing.browsers.kinds import PACKAGES, Kind, is_installed

NEEDS_CHROMIUM = pytest.mark.skipif(
    not is_installed(Kind.CHROMIUM), reason=f"{PACKAGES[Kind.CHROMIUM]} are not installed"
)
