import pytest

from headrace.base.datetime_text import ParsedDatetime, parse_iso_8601, parse_rfc_2822

MIDNIGHT_MS = 1_709_164_800_000  # 2024-02-29T00:00:00Z

ISO: dict[str, ParsedDatetime | None] = {
    "2024-02-29": ParsedDatetime(MIDNIGHT_MS, None),
    "2024-02-29T00:00": ParsedDatetime(MIDNIGHT_MS, None),
    "2024-02-29 00:00:01,9999": ParsedDatetime(MIDNIGHT_MS + 1999, None),
    "2024-02-29t00:00:00z": ParsedDatetime(MIDNIGHT_MS, 0),
    "2024-02-29T01:00:00+02:00": ParsedDatetime(MIDNIGHT_MS + 3_600_000, 7_200_000),
    "2024-02-29T01:00:00-0130": ParsedDatetime(MIDNIGHT_MS + 3_600_000, -5_400_000),
    "1969-12-31T23:59:59.9999Z": ParsedDatetime(-1, 0),
    "0001-01-01": ParsedDatetime(-62_135_596_800_000, None),
    "9999-12-31T23:59:59.999-23:59": ParsedDatetime(253_402_300_799_999, -86_340_000),
    "": None,
    "2024-02-30": None,
    "0000-01-01": None,
    "2024-02-29T24:00:00": None,
    "2024-02-29T00:00:60": None,
    "2024-02-29T00:00:00+24:00": None,
    "2024-02-29T00:00:00+00:60": None,
    "2024-02-29T00:00:00+02": None,
    "2024-02-29+02:00": None,
    "2024-02-29\n": None,
    "20240229": None,
    "2024-W09-4": None,
    "\u0662\u0660\u0662\u0664-02-29": None,
}

RFC: dict[str, ParsedDatetime | None] = {
    "Thu, 29 Feb 2024 01:00:00 +0100": ParsedDatetime(MIDNIGHT_MS + 3_600_000, 3_600_000),
    "29 FEB 2024 00:00 est": ParsedDatetime(MIDNIGHT_MS, -18_000_000),
    "Thu, 29 Foo 2024 01:00:00 GMT": None,
    "Thu, 29 Feb 2024 01:00:00 XYZ": None,
    "Thu, 30 Feb 2024 01:00:00 GMT": None,
    "\u017fun, 25 Feb 2024 01:00:00 GMT": None,  # a long s, which is an s in capitals
    "2024-02-29": None,
}


@pytest.mark.parametrize(("text", "expected"), ISO.items(), ids=ISO)
def test_iso_8601(text: str, expected: ParsedDatetime | None) -> None:
    assert parse_iso_8601(text) == expected


@pytest.mark.parametrize(("text", "expected"), RFC.items(), ids=RFC)
def test_rfc_2822(text: str, expected: ParsedDatetime | None) -> None:
    assert parse_rfc_2822(text) == expected


def test_clock_without_an_offset_is_taken_as_utc() -> None:
    assert ParsedDatetime(MIDNIGHT_MS, None).epoch_ms == MIDNIGHT_MS
    assert ParsedDatetime(MIDNIGHT_MS, 60_000).epoch_ms == MIDNIGHT_MS - 60_000
