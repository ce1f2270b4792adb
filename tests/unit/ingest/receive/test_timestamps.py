from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.ingest.receive.decoding.timestamps import (
    EARLIEST_MS,
    INVALID_TIMESTAMP,
    SECONDS_HINT,
    TOO_EARLY,
    parse_timestamp,
    parse_timestamps,
)

RECEIVED_MS = 1_714_564_800_000  # 2024-05-01T12:00:00Z
DAY_MS = 1_709_164_800_000  # 2024-02-29T00:00:00Z

ACCEPTED: dict[str, tuple[float | str, int]] = {
    "integer": (DAY_MS, DAY_MS),
    "fraction is dropped": (DAY_MS + 0.9, DAY_MS),
    "float": (float(DAY_MS), DAY_MS),
    "exponent": (1.709164801e12, DAY_MS + 1000),
    "earliest": (EARLIEST_MS, EARLIEST_MS),
    "exactly 24 h ahead": (RECEIVED_MS + MILLISECONDS_PER_DAY, RECEIVED_MS + MILLISECONDS_PER_DAY),
    "a millisecond over 24 h ahead": (RECEIVED_MS + MILLISECONDS_PER_DAY + 1, RECEIVED_MS),
    "far ahead": (10**400, RECEIVED_MS),
    "far ahead as a float": (1e300, RECEIVED_MS),
    "far ahead as text": ("9999-12-31T23:59:59-23:59", RECEIVED_MS),
    "date": ("2024-02-29", DAY_MS),
    "T": ("2024-02-29T00:00:01", DAY_MS + 1000),
    "t": ("2024-02-29t00:00:01", DAY_MS + 1000),
    "blank": ("2024-02-29 00:00:01", DAY_MS + 1000),
    "Z": ("2024-02-29T00:00:00Z", DAY_MS),
    "offset with a colon": ("2024-02-29T02:00:00+02:00", DAY_MS),
    "offset without a colon": ("2024-02-29T02:00:00+0200", DAY_MS),
    "offset to the west": ("2024-02-28T18:30:00-05:30", DAY_MS),
    "offset zero": ("2024-02-29T00:00:00-00:00", DAY_MS),
    "one digit of fraction": ("2024-02-29T00:00:00.5Z", DAY_MS + 500),
    "three digits of fraction": ("2024-02-29T00:00:00.123Z", DAY_MS + 123),
    "fraction is cut and not rounded": ("2024-02-29T00:00:00.1239999999999+00:00", DAY_MS + 123),
    "last second of a day": ("2024-02-29T23:59:59.999", DAY_MS + MILLISECONDS_PER_DAY - 1),
    "RFC 2822": ("Thu, 29 Feb 2024 01:00:00 +0100", DAY_MS),
    "RFC 2822 in GMT": ("Thu, 29 Feb 2024 00:00:00 GMT", DAY_MS),
    "RFC 2822 in an old zone": ("Wed, 28 Feb 2024 19:00:00 EST", DAY_MS),
    "RFC 2822 with another weekday": ("Mon, 29 Feb 2024 01:00:00 +0100", DAY_MS),
    "RFC 2822 without a weekday": ("29 feb 2024 00:00:00 -0000", DAY_MS),
    "RFC 2822 without seconds": ("29 Feb 2024 00:00 UT", DAY_MS),
    "RFC 2822 with one digit of day": ("1 Mar 2024 00:00:00 +0000", DAY_MS + MILLISECONDS_PER_DAY),
    "RFC 2822 with a comment": ("Thu, 29 Feb 2024 01:00:00 +0100 (CET)", DAY_MS),
}

REJECTED: dict[str, tuple[Any, str]] = {
    "seconds": (1_714_564_800, SECONDS_HINT),
    "seconds as a float": (1_714_564_800.5, SECONDS_HINT),
    "a millisecond too early": (EARLIEST_MS - 1, TOO_EARLY),
    "too early after dropping the fraction": (EARLIEST_MS - 0.5, TOO_EARLY),
    "zero": (0, TOO_EARLY),
    "negative": (-1, TOO_EARLY),
    "very negative": (-(10**400), TOO_EARLY),
    "text too early": ("1999-12-31", TOO_EARLY),
    "text too early by its offset": ("2000-01-01T00:00:00+00:01", TOO_EARLY),
    "boolean": (True, INVALID_TIMESTAMP),
    "not a number": (float("nan"), INVALID_TIMESTAMP),
    "infinite": (float("inf"), INVALID_TIMESTAMP),
    "empty": ("", INVALID_TIMESTAMP),
    "words": ("yesterday", INVALID_TIMESTAMP),
    "number as text": ("1714564800000", INVALID_TIMESTAMP),
    "leading blank": (" 2024-02-29", INVALID_TIMESTAMP),
    "trailing line feed": ("2024-02-29\n", INVALID_TIMESTAMP),
    "year and month": ("2024-02", INVALID_TIMESTAMP),
    "hour only": ("2024-02-29T10", INVALID_TIMESTAMP),
    "no seconds": ("2024-02-29T00:01", INVALID_TIMESTAMP),
    "no seconds and an offset": ("2024-02-29 00:01+02:00", INVALID_TIMESTAMP),
    "small z": ("2024-02-29t00:00:00z", INVALID_TIMESTAMP),
    "fraction with a comma": ("2024-02-29T00:00:00,25", INVALID_TIMESTAMP),
    "no such day": ("2023-02-29", INVALID_TIMESTAMP),
    "no such month": ("2024-13-01", INVALID_TIMESTAMP),
    "year zero": ("0000-01-01", INVALID_TIMESTAMP),
    "24 o'clock": ("2024-02-29T24:00:00Z", INVALID_TIMESTAMP),
    "minute 60": ("2024-02-29T10:60:00Z", INVALID_TIMESTAMP),
    "second 60": ("2024-02-29T10:00:60Z", INVALID_TIMESTAMP),
    "offset out of range": ("2024-02-29T10:00:00+24:00", INVALID_TIMESTAMP),
    "offset minutes out of range": ("2024-02-29T10:00:00+02:60", INVALID_TIMESTAMP),
    "offset of hours": ("2024-02-29T10:00:00+02", INVALID_TIMESTAMP),
    "blank before the offset": ("2024-02-29T10:00:00 +02:00", INVALID_TIMESTAMP),
    "fraction without digits": ("2024-02-29T10:00:00.Z", INVALID_TIMESTAMP),
    "week date": ("2024-W09-4", INVALID_TIMESTAMP),
    "without dashes": ("20240229", INVALID_TIMESTAMP),
    "other digits": ("\u0662\u0660\u0662\u0664-02-29", INVALID_TIMESTAMP),
    "slashes": ("02/29/2024", INVALID_TIMESTAMP),
    "JavaScript's toString": ("Thu Feb 29 2024 01:00:00 GMT+0100 (CET)", INVALID_TIMESTAMP),
    "RFC 2822 without a zone": ("Thu, 29 Feb 2024 01:00:00", INVALID_TIMESTAMP),
    "RFC 2822 in an unknown zone": ("Thu, 29 Feb 2024 01:00:00 XYZ", INVALID_TIMESTAMP),
    "RFC 2822 in an unknown month": ("Thu, 29 Foo 2024 01:00:00 GMT", INVALID_TIMESTAMP),
}


@pytest.mark.parametrize(("value", "expected"), ACCEPTED.values(), ids=ACCEPTED)
def test_timestamp_is_read(value: float | str, expected: int) -> None:
    assert parse_timestamp(value, received_ms=RECEIVED_MS) == expected


@pytest.mark.parametrize(("value", "sentence"), REJECTED.values(), ids=REJECTED)
def test_invalid_timestamp_gets_a_clear_error(value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^must") as rejection:
        parse_timestamp(value, received_ms=RECEIVED_MS)

    assert str(rejection.value) == sentence


def test_text_is_parsed_like_the_standard_library() -> None:
    text = "2024-02-29T13:37:42.042+05:45"

    expected = datetime.fromisoformat(text).astimezone(UTC)

    assert parse_timestamp(text, received_ms=RECEIVED_MS) == round(expected.timestamp() * 1000)


def test_batch_uses_the_time_of_receipt_for_missing_timestamps() -> None:
    sent = [None, DAY_MS, DAY_MS + 0.5, "2024-02-29", RECEIVED_MS + 2 * MILLISECONDS_PER_DAY]

    timestamps = parse_timestamps(sent, received_ms=RECEIVED_MS)

    assert timestamps == [RECEIVED_MS, DAY_MS, DAY_MS, DAY_MS, RECEIVED_MS]
