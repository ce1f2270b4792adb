"""Which changes make the rows of which website others."""

import pytest

from headrace.adapters.query_scheduler.versions import DataVersions


def test_rows_of_a_website_change_with_its_own_alone() -> None:
    versions = DataVersions()
    before = {website: versions.version_of(website) for website in ("a", "b", "")}
    with versions.changing({"a"}):
        assert versions.version_of("b") == before["b"]
        assert (versions.version_of("a"), versions.version_of("")) == (None, None)
    assert versions.version_of("b") == before["b"]
    assert versions.version_of("a") not in (None, before["a"])
    assert versions.version_of("") not in (None, before[""])


def test_change_of_all_is_one_of_every_website() -> None:
    versions = DataVersions()
    before = versions.version_of("a")
    with versions.changing_all():
        assert versions.version_of("a") is None
    assert versions.version_of("a") not in (None, before)


def test_change_that_fails_is_a_change() -> None:
    versions = DataVersions()
    before = versions.version_of("a")
    with pytest.raises(OSError, match="disk"), versions.changing({"a"}), versions.changing_all():
        raise OSError("disk")
    assert versions.version_of("a") not in (None, before)
