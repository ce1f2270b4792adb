"""The changes that give the rows of a website a new version."""

import pytest

from headrace.adapters.query_scheduler.versions import DataVersions


def test_version_of_a_website_changes_only_with_its_rows() -> None:
    versions = DataVersions()
    before = {website: versions.version_of(website) for website in ("a", "b", "")}
    with versions.rows_changing({"a"}):
        assert versions.version_of("b") == before["b"]
        assert (versions.version_of("a"), versions.version_of("")) == (None, None)
    assert versions.version_of("b") == before["b"]
    assert versions.version_of("a") not in (None, before["a"])
    assert versions.version_of("") not in (None, before[""])


def test_change_of_all_is_one_of_every_website() -> None:
    versions = DataVersions()
    before = versions.version_of("a")
    with versions.all_rows_changing():
        assert versions.version_of("a") is None
    assert versions.version_of("a") not in (None, before)


def test_change_that_fails_is_a_change() -> None:
    versions = DataVersions()
    before = versions.version_of("a")
    with (
        pytest.raises(OSError, match="disk"),
        versions.rows_changing({"a"}),
        versions.all_rows_changing(),
    ):
        raise OSError("disk")
    assert versions.version_of("a") not in (None, before)
