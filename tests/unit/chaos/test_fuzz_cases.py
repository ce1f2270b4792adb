"""The fuzzer's cases, and what it takes for a failure."""

import pytest

from chaos.fuzz.cases import Account, Case, make_case
from chaos.fuzz.exchange import Findings, Received

ACCOUNT = Account("web_public", "web_private", "hr_key")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


def test_case_is_the_same_for_the_same_seed_and_number() -> None:
    cases = [make_case(7, number, ACCOUNT) for number in range(300)]
    assert cases == [make_case(7, number, ACCOUNT) for number in range(300)]
    assert len({b"".join(case.pieces) for case in cases}) > 200


@pytest.mark.parametrize(
    ("received", "is_valid_http", "is_failure"),
    [
        pytest.param(OK, True, False, id="a response"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, True, False, id="an interim one too"),
        pytest.param(b"", False, False, id="none to malformed HTTP"),
        pytest.param(b"", True, True, id="none"),
        pytest.param(OK + OK, True, True, id="two to one request"),
        pytest.param(b"HTTP/1.1 500 Internal Server Error\r\n\r\n", False, True, id="a 500"),
        pytest.param(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False, True, id="a 503"),
        pytest.param(None, False, True, id="a connection that hangs"),
    ],
)
def test_findings_have_each_failure(
    received: bytes | None, is_valid_http: bool, is_failure: bool
) -> None:
    findings = Findings()
    case = Case((b"GET /",), 1, is_valid_http)
    findings.record(3, case, None if received is None else Received(received, is_reset=False))
    assert [each.startswith("case 3: ") for each in findings.failures] == [True] * is_failure


@pytest.mark.parametrize("tolerates_503", [True, False])
def test_503_is_a_failure_unless_it_is_tolerated(tolerates_503: bool) -> None:
    findings = Findings(tolerates_503=tolerates_503)
    received = Received(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", is_reset=False)
    findings.record(3, Case((b"GET /",), 1, is_valid_http=True), received)
    assert bool(findings.failures) is not tolerates_503


def test_reset_connection_may_lack_responses() -> None:
    findings = Findings()
    findings.record(3, Case((b"GET /",), 1, is_valid_http=True), Received(b"", is_reset=True))
    assert (findings.failures, findings.resets) == ([], 1)
