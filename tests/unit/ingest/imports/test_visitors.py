"""The visitors that an import remembers."""

from headrace.ingest.imports.visitors import cached_visitors
from headrace.model.log_records import Visitor


def test_address_and_user_agent_are_looked_up_once_and_cut() -> None:
    looked_up: list[tuple[str, str]] = []

    def look_up(address: str, user_agent: str) -> Visitor:
        looked_up.append((address, user_agent))
        return Visitor(city=address)

    find_visitor = cached_visitors(look_up)
    longest = "0000:0000:0000:0000:0000:ffff:192.168.100.228"
    for agent_length in (2048, 2049, 1_000_000):
        for address in (longest, "2001:db8::7%" + "a" * 100_000, "a" * 46, ""):
            expected = longest if address == longest else ""
            assert find_visitor(address, "b" * agent_length).city == expected
    assert looked_up == [(longest, "b" * 2048), ("", "b" * 2048)]
