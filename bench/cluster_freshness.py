"""How long after its 200 an event is in an answer: where it was taken in, and elsewhere."""

import time
from collections.abc import Iterator

from bench.cluster_place import SHARDS, Group, Place, group
from bench.cluster_scale import ClusterScale
from bench.figures import Figure
from tests.e2e.service import Json, Service

GIVE_UP_S = 30.0
_GROUP = "from an event's 200 to the first answer that counts it"


def measure(where: Place, scale: ClusterScale) -> list[Figure]:
    """Send to one machine, and ask both, one after the other."""
    with group(where, machines=2, shards=SHARDS, name="fresh") as ours:
        numbers = iter(range(10**6))
        taker, other = ours.machines
        for asked in ours.machines:
            _seen_after_s(ours, taker, asked, numbers)  # opens connections
        turns = [
            [_seen_after_s(ours, taker, asked, numbers) for asked in (taker, other)]
            for _ in range(scale.fresh_runs)
        ]
    return [
        Figure(group=_GROUP, what=what, unit="s", runs=tuple(turn[place] for turn in turns))
        for place, what in enumerate(
            ("asked on the machine that took it", "asked on the other machine")
        )
    ]


def _seen_after_s(ours: Group, taker: Service, asked: Service, numbers: Iterator[int]) -> float:
    name = f"fresh-{next(numbers)}"
    query: Json = {
        "table": "events",
        "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
        "filters": [{"field": "event_name", "operator": "eq", "value": name}],
    }
    reply = taker.post(f"/track?website_id={ours.website}", {"name": name}, headers=ours.headers)
    assert reply.status_code == 200, reply.text
    acknowledged_s = time.perf_counter()
    while time.perf_counter() < acknowledged_s + GIVE_UP_S:
        answer = asked.ask(ours.website, query, key=ours.key)
        assert answer.status_code in {200, 503}, answer.text
        if answer.status_code == 200 and answer.json()["data"] == [{"n": 1}]:
            return time.perf_counter() - acknowledged_s
    raise AssertionError(f"{name} was acknowledged and is not counted after {GIVE_UP_S} s")
