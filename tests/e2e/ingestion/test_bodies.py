"""Request bodies: content types, encodings, JSON, size limits, and the order of checks."""

import gzip
import json
import socket
import zlib
from collections.abc import Callable, Iterator
from typing import cast

import brotli  # type: ignore[import-untyped]  # has no type annotations
import pytest
import zstandard

from testing.service import Json, Service, bearer, empty_counts
from tests.e2e.conftest import ServiceMaker
from tests.e2e.envelopes import (
    ENDPOINTS,
    INVALID_BODY,
    ITEMS,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    PAYLOAD_TOO_LARGE,
    TABLES,
    UNAUTHORIZED,
    error_envelope,
    field_errors,
    outcome,
    success,
)

MEBIBYTE = 1_048_576
JSON = {"Content-Type": "application/json"}


def raw_deflate(body: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()


def br(body: bytes) -> bytes:
    return cast("bytes", brotli.compress(body, quality=5))  # pyright: ignore[reportUnknownMemberType]


def zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(body)


def identity(body: bytes) -> bytes:
    return body


ENCODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "gzip in upper case": ("GZIP", gzip.compress),
    "deflate with zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", br),
    "zstd": ("zstd", zstd),
    "identity": ("identity", identity),
}


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "Application/JSON",
        "text/json",
        "application/vnd.api+json",
        "application/cloudevents+json; charset=utf-8",
        "text/plain",
        "text/plain;charset=UTF-8",
        None,
    ],
)
def test_json_content_types_are_accepted(
    service: Service, website: str, content_type: str | None
) -> None:
    response = service.post(
        f"/track?website_id={website}",
        data=b'{"name":"signup"}',
        headers={} if content_type is None else {"Content-Type": content_type},
    )

    assert outcome(response) == (200, success("/track"))
    assert service.count(website, "events") == 1


@pytest.mark.parametrize(
    "content_type",
    [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/octet-stream",
        "text/html",
        "application/jsonp",
        "image/gif",
    ],
)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_other_content_type_is_415(
    service: Service, quiet_website: str, endpoint: str, content_type: str
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            f"{endpoint}?client_id={quiet_website}",
            data=json.dumps(ITEMS[endpoint]),
            headers={"Content-Type": content_type},
        )

        assert error_envelope(response) == (
            415,
            {
                "status": "error",
                "message": f'Unsupported media type "{content_type}": send application/json',
                "code": "UNSUPPORTED_MEDIA_TYPE",
            },
        )


@pytest.mark.parametrize(("name", "encode"), ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_encoded_body_is_decoded(
    service: Service,
    website: str,
    endpoint: str,
    name: str,
    encode: Callable[[bytes], bytes],
) -> None:
    response = service.post(
        f"{endpoint}?client_id={website}",
        data=encode(json.dumps(ITEMS[endpoint]).encode()),
        headers={**JSON, "Content-Encoding": name},
    )

    assert outcome(response) == (200, success(endpoint))
    assert service.count(website, TABLES[endpoint]) == 1


@pytest.mark.parametrize(
    ("encoding", "encode"), [("gzip", gzip.compress), ("zstd", zstd)], ids=["gzip", "zstd"]
)
def test_body_in_several_members_or_frames_is_decoded(
    service: Service, website: str, encoding: str, encode: Callable[[bytes], bytes]
) -> None:
    response = service.post(
        f"/track?website_id={website}",
        data=encode(b'{"name":') + encode(b'"signup"}'),
        headers={**JSON, "Content-Encoding": encoding},
    )

    assert outcome(response) == (200, success("/track"))
    assert service.row(website, "events", ["event_name"]) == {"event_name": "signup"}


@pytest.mark.parametrize("encoding", ["compress", "lzma", "gzip, br", "gzip,gzip", "nonsense"])
def test_unknown_or_several_encodings_are_415(
    service: Service, quiet_website: str, encoding: str
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            f"/track?website_id={quiet_website}",
            data=gzip.compress(b'{"name":"signup"}'),
            headers={**JSON, "Content-Encoding": encoding},
        )

        supported = "gzip, deflate, br, zstd, identity"
        assert error_envelope(response) == (
            415,
            {
                "status": "error",
                "message": f'Unsupported content encoding "{encoding}": send one of {supported}',
                "code": "UNSUPPORTED_ENCODING",
            },
        )


GOOD = b'{"name":"signup","properties":{"plan":"' + bytes(range(97, 123)) * 40 + b'"}}'


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"not gzip at all"),
        ("gzip", gzip.compress(GOOD)[:-20]),
        ("gzip", b""),
        ("deflate", b"\xff\xff not deflate"),
        ("deflate", zlib.compress(GOOD)[:-10]),
        ("deflate", raw_deflate(GOOD)[:-10]),
        ("gzip", gzip.compress(GOOD) + b"more"),
        ("zstd", zstd(GOOD) + b"more"),
        ("br", b"\xff not brotli"),
        ("br", br(GOOD)[:-10]),
        ("zstd", b"not zstd"),
        ("zstd", zstd(GOOD)[:-10]),
        ("identity", gzip.compress(GOOD)),
    ],
    ids=[
        "gzip garbage",
        "gzip cut",
        "gzip empty",
        "deflate garbage",
        "deflate cut",
        "raw deflate cut",
        "gzip with something behind",
        "zstd with something behind",
        "br garbage",
        "br cut",
        "zstd garbage",
        "zstd cut",
        "gzip that is called identity",
    ],
)
def test_damaged_data_is_400(
    service: Service, quiet_website: str, encoding: str, body: bytes
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            f"/track?website_id={quiet_website}",
            data=body,
            headers={**JSON, "Content-Encoding": encoding},
        )

        assert without_errors(error_envelope(response)) == INVALID_BODY


MALFORMED = {
    "empty": b"",
    "blank": b"  \n",
    "cut object": b'{"name":"signup"',
    "cut array": b'[{"name":"signup"},',
    "trailing comma": b'[{"name":"signup"},]',
    "two values": b'{"name":"signup"}{"name":"signup"}',
    "trailing text": b'{"name":"signup"} signup',
    "single quotes": b"{'name':'signup'}",
    "comment": b'{"name":"signup"/* why */}',
    "NaN": b'{"name":"signup","properties":{"x":NaN}}',
    "Infinity": b'{"name":"signup","properties":{"x":Infinity}}',
    "raw line feed in a text": b'{"name":"sign\nup"}',
    "raw NUL in a text": b'{"name":"sign\x00up"}',
    "byte order mark": b'\xef\xbb\xbf{"name":"signup"}',
    "UTF-16": '{"name":"signup"}'.encode("utf-16"),
    "Latin-1": '{"name":"größe"}'.encode("latin-1"),
    "overlong UTF-8": b'{"name":"a\xc0\xafb"}',
    "surrogate in UTF-8": b'{"name":"a\xed\xa0\x80b"}',
}


def without_errors(rejected: tuple[int, dict[str, Json]]) -> tuple[int, dict[str, Json]]:
    """Drop `errors`, for tests that are not about the fields."""
    status, body = rejected
    return status, {key: value for key, value in body.items() if key != "errors"}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_malformed_json_is_400_without_field_errors(
    service: Service, quiet_website: str, body: bytes
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(f"/track?website_id={quiet_website}", data=body, headers=JSON)

        assert error_envelope(response) == INVALID_BODY


@pytest.mark.parametrize("body", [b'"signup"', b"5", b"null", b"true"], ids=bytes.decode)
def test_body_that_is_no_object_is_a_field_error_of_the_item(
    service: Service, quiet_website: str, body: bytes
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(f"/track?website_id={quiet_website}", data=body, headers=JSON)

        assert field_errors(response) == [(0, "")]


def test_last_of_repeated_keys_wins(service: Service, website: str) -> None:
    body = b'{"name":"first","properties":{"a":1,"a":2},"name":"last"}'

    response = service.post(f"/track?website_id={website}", data=body, headers=JSON)

    assert outcome(response) == (200, success("/track"))
    row = service.row(website, "events", ["event_name", "properties.a"])
    assert row == {"event_name": "last", "properties.a": 2}


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
def test_bare_object_is_accepted(service: Service, website: str, endpoint: str) -> None:
    response = service.post(f"{endpoint}?client_id={website}", ITEMS[endpoint])

    assert outcome(response) == (200, success(endpoint))
    assert service.count(website, TABLES[endpoint]) == 1


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
def test_array_counts_its_items(service: Service, website: str, endpoint: str) -> None:
    response = service.post(f"{endpoint}?client_id={website}", [ITEMS[endpoint]] * 3)

    assert outcome(response) == (200, success(endpoint, 3))
    assert service.count(website, TABLES[endpoint]) == 3


@pytest.mark.parametrize("body", [[], [ITEMS["/"]]], ids=["empty", "of one"])
def test_array_as_root_is_400(service: Service, quiet_website: str, body: Json) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(f"/?client_id={quiet_website}", body)

        assert without_errors(error_envelope(response)) == INVALID_BODY


def nested(levels: int) -> Json:
    """Return objects nested `levels` deep."""
    value: Json = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "body",
    [{"name": "deep", "properties": nested(63)}, [{"name": "deep", "properties": nested(62)}]],
    ids=["bare", "in an array"],
)
def test_nesting_of_64_is_stored(service: Service, website: str, body: Json) -> None:
    response = service.post(f"/track?website_id={website}", body)

    assert outcome(response) == (200, success("/track"))
    row = service.row(website, "events", ["event_name", "properties.a"])
    levels = 61 if isinstance(body, list) else 62
    assert row == {"event_name": "deep", "properties.a": compact(nested(levels))}


def compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize(
    "body",
    [
        {"name": "deep", "properties": nested(64)},
        [{"name": "deep", "properties": nested(63)}],
        {"name": "deep", "unknown": nested(64)},
        {"name": "deep", "properties": nested(500)},
    ],
    ids=["bare", "in an array", "under an unknown key", "very deep"],
)
def test_nesting_over_64_is_400(service: Service, quiet_website: str, body: Json) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(f"/track?website_id={quiet_website}", body)

        assert without_errors(error_envelope(response)) == INVALID_BODY


@pytest.mark.parametrize("opening", [b"[", b'{"a":'], ids=["arrays", "objects"])
def test_nesting_as_deep_as_the_bound_of_objects_is_400(
    service: Service, quiet_website: str, opening: bytes
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            f"/track?website_id={quiet_website}", data=opening * 100_000, headers=JSON
        )

        assert without_errors(error_envelope(response)) == INVALID_BODY


def padded(length: int) -> bytes:
    """Return a valid body of exactly the given length in bytes."""
    return b'{"name":"padded"}'.ljust(length)


def chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 65_536):
        yield body[start : start + 65_536]


def test_ten_mebibytes_on_the_wire_are_accepted(service: Service, website: str) -> None:
    response = service.post(
        f"/track?website_id={website}", data=padded(10 * MEBIBYTE), headers=JSON
    )

    assert outcome(response) == (200, success("/track"))
    assert service.count(website, "events") == 1


@pytest.mark.parametrize("chunked", [False, True], ids=["with length", "chunked"])
def test_one_byte_more_on_the_wire_is_413(
    service: Service, quiet_website: str, chunked: bool
) -> None:
    body = padded(10 * MEBIBYTE + 1)

    with empty_counts(service, quiet_website):
        response = service.post(
            f"/track?website_id={quiet_website}",
            data=chunks(body) if chunked else body,
            headers=JSON,
        )

        assert error_envelope(response) == PAYLOAD_TOO_LARGE


def test_twenty_mebibytes_decoded_are_accepted(service: Service, website: str) -> None:
    response = service.post(
        f"/track?website_id={website}",
        data=gzip.compress(padded(20 * MEBIBYTE)),
        headers={**JSON, "Content-Encoding": "gzip"},
    )

    assert outcome(response) == (200, success("/track"))
    assert service.count(website, "events") == 1


@pytest.mark.parametrize("length", [20 * MEBIBYTE + 1, 100 * MEBIBYTE], ids=["a byte", "a bomb"])
@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("gzip", gzip.compress),
        ("deflate", raw_deflate),
        ("br", br),
        ("zstd", zstd),
    ],
    ids=["gzip", "deflate", "br", "zstd"],
)
def test_more_than_twenty_mebibytes_decoded_are_413(
    service: Service,
    quiet_website: str,
    name: str,
    encode: Callable[[bytes], bytes],
    length: int,
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            f"/track?website_id={quiet_website}",
            data=encode(padded(length)),
            headers={**JSON, "Content-Encoding": name},
        )

        assert error_envelope(response) == PAYLOAD_TOO_LARGE


def test_ten_thousand_items_are_accepted(service: Service, website: str) -> None:
    batch = [{"name": "n", "anonymousId": str(number)} for number in range(10_000)]

    response = service.post(f"/track?website_id={website}", batch)

    assert outcome(response) == (200, success("/track", 10_000))
    stored = service.counts(website, "events", "anonymous_id")
    assert stored == {str(number): 1 for number in range(10_000)}


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
def test_one_item_more_is_413(service: Service, quiet_website: str, endpoint: str) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(f"{endpoint}?client_id={quiet_website}", [ITEMS[endpoint]] * 10_001)

        assert error_envelope(response) == PAYLOAD_TOO_LARGE


def test_chunked_body_is_accepted(service: Service, website: str) -> None:
    response = service.post(
        f"/track?website_id={website}", data=iter([b'{"name":', b'"signup"}']), headers=JSON
    )

    assert outcome(response) == (200, success("/track"))
    assert service.count(website, "events") == 1


def test_size_comes_before_body_and_credentials(service: Service) -> None:
    response = service.post("/track", data=b"x" * (10 * MEBIBYTE + 1), headers=JSON)

    assert error_envelope(response) == PAYLOAD_TOO_LARGE


def test_encoding_comes_before_body_and_credentials(service: Service) -> None:
    response = service.post("/track", data=b"x", headers={**JSON, "Content-Encoding": "compress"})

    assert error_envelope(response)[1]["code"] == "UNSUPPORTED_ENCODING"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_body_comes_before_credentials(service: Service, endpoint: str) -> None:
    response = service.post(endpoint, data=b"{", headers=JSON)

    assert error_envelope(response) == INVALID_BODY


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_other_method_is_405_before_everything_else(
    service: Service, endpoint: str, method: str
) -> None:
    response = service.http.request(
        method, service.url + endpoint, data=b"x", headers={"Content-Encoding": "nonsense"}
    )

    assert error_envelope(response) == METHOD_NOT_ALLOWED
    assert "POST" in [name.strip() for name in response.headers["Allow"].split(",")]


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
def test_get_is_405(service: Service, endpoint: str) -> None:
    response = service.get(endpoint)

    assert error_envelope(response) == METHOD_NOT_ALLOWED
    assert "POST" in [name.strip() for name in response.headers["Allow"].split(",")]


@pytest.mark.parametrize("path", ["/nowhere", "/track/", "/track/x", "/Track", "/v1x"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unknown_path_is_404(service: Service, method: str, path: str) -> None:
    response = service.http.request(method, service.url + path, allow_redirects=False)

    assert error_envelope(response) == NOT_FOUND


def test_no_credentials_with_a_valid_body_is_401(service: Service) -> None:
    assert error_envelope(service.post("/track", {"name": "signup"})) == UNAUTHORIZED


@pytest.mark.slow
def test_stalled_body_is_408_and_not_stored(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service(settings={"HEADRACE_BODY_TIMEOUT_S": "1"}).start()
    website = service.website()
    head = f"POST /track?website_id={website} HTTP/1.1\r\nHost: localhost\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 17\r\n\r\n"

    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(head.encode() + b'{"name":"sig')
        result = read_all(connection)

    head_text, _, body_text = result.partition(b"\r\n\r\n")
    body = json.loads(body_text)
    assert head_text.split(b"\r\n")[0].startswith(b"HTTP/1.1 408")
    assert (body["status"], body["code"]) == ("error", "REQUEST_TIMEOUT")
    assert body["message"]
    assert service.count(website, "events") == 0


@pytest.mark.slow
def test_limits_are_settings(dedicated_service: ServiceMaker) -> None:
    settings = {"HEADRACE_MAX_BODY_BYTES": "300", "HEADRACE_MAX_DECODED_BYTES": "400"}
    service = dedicated_service(settings={**settings, "HEADRACE_MAX_ITEMS": "3"}).start()
    path = f"/track?website_id={service.website()}"
    encoded = {**JSON, "Content-Encoding": "gzip"}

    accepted = [
        service.post(path, data=padded(300), headers=JSON),
        service.post(path, data=gzip.compress(padded(400)), headers=encoded),
        service.post(path, [{"name": "a"}] * 3),
    ]
    rejected = [
        service.post(path, data=padded(301), headers=JSON),
        service.post(path, data=gzip.compress(padded(401)), headers=encoded),
        service.post(path, [{"name": "a"}] * 4),
    ]

    assert [response.status_code for response in accepted] == [200] * 3
    assert [error_envelope(response) for response in rejected] == [PAYLOAD_TOO_LARGE] * 3


def read_all(connection: socket.socket) -> bytes:
    """Read until the service closes the connection, which it must do after a 408."""
    result = b""
    while part := connection.recv(65_536):
        result += part
    return result


NO_HTTP = {
    "words": b"HELLO\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "negative length": b"POST /track HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "two lengths": (
        b"POST /track HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "broken chunk": (
        b"POST /track HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"
    ),
}


@pytest.mark.parametrize("sent", NO_HTTP.values(), ids=NO_HTTP)
def test_invalid_http_is_400_and_affects_no_other_client(service: Service, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(sent)
        result = read_all(connection)

    assert result.startswith(b"HTTP/1.1 400 ")
    service.wait_ready()


def test_client_disconnect_within_a_body_stores_nothing(
    service: Service, quiet_website: str
) -> None:
    head = f"POST /track?website_id={quiet_website} HTTP/1.1\r\nHost: localhost\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"

    with empty_counts(service, quiet_website):
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
            connection.sendall(head.encode() + b'{"name":"signup"}')

        service.wait_ready()


def test_field_error_has_index_field_and_message(service: Service) -> None:
    response = service.post("/track", [{"name": "a"}, {"name": ""}])

    assert field_errors(response) == [(1, "name")]


def test_field_error_of_a_bare_object_has_index_0(service: Service) -> None:
    assert field_errors(service.post("/track", {"name": ""})) == [(0, "name")]


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
@pytest.mark.parametrize(
    "item", ["text", 5, None, True, []], ids=["text", "number", "null", "true", "array"]
)
def test_non_object_item_is_a_field_error_of_the_item(
    service: Service, quiet_website: str, endpoint: str, item: Json
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(f"{endpoint}?client_id={quiet_website}", [ITEMS[endpoint], item])

        assert field_errors(response) == [(1, "")]


def test_field_errors_are_ordered_by_index_then_as_specified(service: Service) -> None:
    bad: Json = {
        "websiteId": "w" * 256,
        "source": "s" * 65,
        "namespace": "n" * 65,
        "timestamp": "soon",
        "sessionId": "s" * 257,
        "anonymousId": "a" * 257,
        "properties": [],
        "name": "",
    }
    fields = ["name", "properties", "anonymousId", "sessionId"]
    fields += ["timestamp", "namespace", "source", "websiteId"]

    response = service.post("/track", [bad, {"name": "fine"}, bad])

    assert field_errors(response) == [(index, field) for index in (0, 2) for field in fields]


def test_field_errors_of_vitals_are_ordered_as_specified(service: Service) -> None:
    bad = {"sessionId": 1, "anonymousId": 1, "metricValue": "1", "metricName": "X", "path": 1}
    fields = ["timestamp", "path", "metricName", "metricValue", "anonymousId", "sessionId"]

    response = service.post("/vitals", [bad])

    assert field_errors(response) == [(0, field) for field in fields]


def test_field_errors_of_errors_are_ordered_as_specified(service: Service) -> None:
    fields = ["timestamp", "path", "message", "filename", "lineno", "colno", "stack"]
    fields += ["errorType", "anonymousId", "sessionId"]

    response = service.post("/errors", [{field: [] for field in reversed(fields)}])

    assert field_errors(response) == [(0, field) for field in fields]


LAST_FIELDS = {
    "/track": ["websiteId", "eventId", "path", "url"],
    "/vitals": ["sessionId", "websiteId", "eventId", "url"],
    "/errors": ["sessionId", "websiteId", "eventId", "url", "level"],
    "/batch": ["websiteId", "eventId", "path", "url"],
    "/": ["websiteId", "eventId", "path", "url"],
}
PAGE_VIEW_TEXTS = {"title": "t" * 513, "referrer": "r" * 2049}


@pytest.mark.parametrize("endpoint", LAST_FIELDS)
def test_field_errors_of_the_fields_beyond_the_specified_ones_have_a_fixed_order(
    service: Service, endpoint: str
) -> None:
    fields = [*LAST_FIELDS[endpoint], "ip", "userAgent"]
    promoted = PAGE_VIEW_TEXTS if endpoint in ("/batch", "/") else {}
    bad = {**promoted, **ITEMS[endpoint], **dict.fromkeys(reversed(fields), 5)}

    response = service.post(endpoint, bad, headers=bearer(service.master))

    assert field_errors(response) == [(0, field) for field in [*fields, *promoted]]


@pytest.mark.parametrize("authorization", ["Bearer hr_unknown", "Bearer"], ids=["unknown", "empty"])
def test_ip_and_user_agent_are_checked_for_a_key_that_is_not_valid_too(
    service: Service, authorization: str
) -> None:
    item = {"name": "a", "ip": "nonsense", "userAgent": 5}

    response = service.post("/track", item, headers={"Authorization": authorization})

    assert field_errors(response) == [(0, "ip"), (0, "userAgent")]


def test_at_most_fifty_field_errors_are_listed(service: Service) -> None:
    response = service.post("/track", [{"name": ""}] * 60)

    assert field_errors(response) == [(index, "name") for index in range(50)]


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
def test_one_invalid_item_rejects_the_batch(
    service: Service, quiet_website: str, endpoint: str
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            f"{endpoint}?client_id={quiet_website}", [ITEMS[endpoint], {}, ITEMS[endpoint]]
        )

        assert {index for index, _ in field_errors(response)} == {1}
