"""A short run of the fuzzer; `make fuzz` is the long one."""

from collections.abc import Callable
from functools import partial

import pytest

from chaos.fuzz.cases import make_case
from chaos.fuzz.exchange import Findings, numbered, run_cases
from chaos.fuzz.service import child_pids, find_damage, make_account
from testing.service import Service

ServiceMaker = Callable[..., Service]
REQUESTS = 500


@pytest.mark.slow
async def test_mutated_requests_get_no_server_error_and_end_no_worker(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(workers=2).start()
    pids = child_pids(service)
    findings = Findings(tolerates_503=True)
    cases = numbered(partial(make_case, 1, account=make_account(service)), REQUESTS)
    await run_cases(service.port, cases, findings, connections=8)
    assert [*findings.failures, *find_damage(service, pids)] == []
    assert {200, 400, 401, 404, 405} <= findings.statuses.keys()
