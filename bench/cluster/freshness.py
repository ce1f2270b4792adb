"""Measures the delay from a 200 to visibility in queries, on the same and on another machine."""

import time
from collections.abc import Iterator

from bench.cluster.environment import SHARDS, ClusterEnv, Deployment, run_deployment
from bench.cluster.scale import ClusterScale
from bench.report.measurements import Measurement
from testing.service import Json, Service

TIMEOUT_S = 30.0
_GROUP = "from an event's 200 to the first answer that counts it"


def measure(env: ClusterEnv, scale: ClusterScale) -> list[Measurement]:
    """Send events to one machine and query both machines, in turn."""
    with run_deployment(env, machines=2, shards=SHARDS, name="fresh") as deployment:
        numbers = iter(range(10**6))
        receiver, other = deployment.machines
        for queried in deployment.machines:
            _visible_after_s(deployment, receiver, queried, numbers)  # opens connections
        turns = [
            [
                _visible_after_s(deployment, receiver, queried, numbers)
                for queried in (receiver, other)
            ]
            for _ in range(scale.freshness_runs)
        ]
    return [
        Measurement(group=_GROUP, title=title, unit="s", runs=tuple(turn[index] for turn in turns))
        for index, title in enumerate(
            ("asked on the machine that took it", "asked on the other machine")
        )
    ]


def _visible_after_s(
    deployment: Deployment, receiver: Service, queried: Service, numbers: Iterator[int]
) -> float:
    name = f"fresh-{next(numbers)}"
    query: Json = {
        "table": "events",
        "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
        "filters": [{"field": "event_name", "operator": "eq", "value": name}],
    }
    response = receiver.post(
        f"/track?website_id={deployment.website}", {"name": name}, headers=deployment.headers
    )
    assert response.status_code == 200, response.text
    acknowledged_s = time.perf_counter()
    while time.perf_counter() < acknowledged_s + TIMEOUT_S:
        response = queried.send_query(deployment.website, query, key=deployment.key)
        assert response.status_code in {200, 503}, response.text
        if response.status_code == 200 and response.json()["data"] == [{"n": 1}]:
            return time.perf_counter() - acknowledged_s
    raise AssertionError(f"{name} was acknowledged and is not counted after {TIMEOUT_S} s")
