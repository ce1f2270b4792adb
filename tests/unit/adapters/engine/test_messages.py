"""Messages between workers and the engine process that carry more than MessagePack has."""

import msgspec
import pytest

from headrace.adapters.engine.ipc.framing import REPLY_DECODER, REQUEST_DECODER
from headrace.adapters.engine.ipc.messages import EraseRows, ErasureBegun
from headrace.model.erasure import ErasureRequest, Selector, SelectorKind
from headrace.model.plan import FilterScalar
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.erasure import Erasure, ErasurePlan


@pytest.mark.parametrize("value", ["é\n", 5, 5.0, -0.5, 1e300, True, 2**64, -(10**30)], ids=repr)
def test_an_erasure_arrives_as_it_was_sent(value: FilterScalar) -> None:
    selector = Selector(SelectorKind.PROPERTY, value, "account")
    request = ErasureRequest(website_id=WebsiteId("web_1"), selectors=(selector,), by="key_1")
    arrived = REQUEST_DECODER.decode(msgspec.msgpack.encode(EraseRows.of(request)))
    assert isinstance(arrived, EraseRows)
    assert arrived.request() == request
    assert type(arrived.request().selectors[0].value) is type(value)


def test_the_reply_to_an_erasure_has_no_plan() -> None:
    selector = Selector(SelectorKind.PROPERTY, 10**30, "account")
    erasure = Erasure(
        id="era_1",
        website_id=WebsiteId("web_1"),
        kind=SelectorKind.PROPERTY,
        subjects=(),
        by="key_1",
        requested_ms=1,
        rows={"events": 2},
    )
    planned = msgspec.structs.replace(erasure, plan=ErasurePlan((selector,), ()))
    arrived = REPLY_DECODER.decode(msgspec.msgpack.encode(ErasureBegun.of(planned)))
    assert arrived == ErasureBegun(erasure)
