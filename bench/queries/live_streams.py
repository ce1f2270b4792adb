"""How late live streams show events, and what a hundred of them cost.

    python -m bench.queries.live_streams

Starts a service with one worker, sends events at a steady rate without and with listeners, and
prints the time from the acknowledgement of an event to each listener, and the processor time of all
processes of the service.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from testing.service import Key, Service

LISTENERS: Final = 100
PER_KEY: Final = 20
EVENTS_PER_S: Final = 20
SECONDS: Final = 20
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def cpu_s(service: Service) -> float:
    """Return the processor time of the service's processes in seconds."""
    pids = [service.pid, *service.child_pids("engine"), *service.child_pids("worker")]
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / _TICKS


async def listen(
    service: Service, website: str, key: Key, opened: asyncio.Event, seen: dict[str, float]
) -> None:
    """Read one stream and note when each event came, by its name."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(
        f"GET /v1/live?website_id={website} HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {key.secret}\r\n\r\n".encode()
    )
    try:
        async for line in reader:
            if line == b":\n":
                opened.set()
            elif line.startswith(b"data: "):
                seen[json.loads(line[6:])["row"]["event_name"]] = time.monotonic()
    finally:
        writer.close()


async def send_events(service: Service, website: str, key: Key) -> Mapping[str, float]:
    """Send events at a steady rate; return when each was acknowledged, by its name."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    acknowledged: dict[str, float] = {}
    began_s = time.monotonic()
    for number in range(EVENTS_PER_S * SECONDS):
        await asyncio.sleep(began_s + number / EVENTS_PER_S - time.monotonic())
        body = json.dumps({"name": f"e{number}", "path": "/pricing"}).encode()
        writer.write(
            f"POST /track?website_id={website} HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {key.secret}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        acknowledged[f"e{number}"] = time.monotonic()
    writer.close()
    return acknowledged


async def measure(service: Service, listeners: int) -> tuple[float, Sequence[float]]:
    """Return the processor time and the delays of all events at all listeners, in seconds."""
    website = service.website()
    keys = [service.key() for _ in range(1 + listeners // PER_KEY)]
    await send_events_once(service, website, keys[0])
    seen: list[dict[str, float]] = [{} for _ in range(listeners)]
    opened = [asyncio.Event() for _ in range(listeners)]
    tasks = [
        asyncio.create_task(
            listen(service, website, keys[index // PER_KEY], opened[index], seen[index])
        )
        for index in range(listeners)
    ]
    for one in opened:
        await one.wait()
    before_s = cpu_s(service)
    acknowledged = await send_events(service, website, keys[0])
    await asyncio.sleep(1)
    spent_s = cpu_s(service) - before_s
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    delays = [one[name] - at_s for one in seen for name, at_s in acknowledged.items()]
    return spent_s, delays


async def send_events_once(service: Service, website: str, key: Key) -> None:
    """Send one event, so that every worker knows the website and the key."""
    response = await asyncio.to_thread(
        service.post,
        f"/track?website_id={website}",
        {"name": "first"},
        headers={"Authorization": f"Bearer {key.secret}"},
    )
    response.raise_for_status()


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as directory:
        service = Service(Path(directory, "data")).start()
        try:
            quiet_s, _ = asyncio.run(measure(service, 0))
            time.sleep(1)
            busy_s, delays = asyncio.run(measure(service, LISTENERS))
        finally:
            service.kill()
    milliseconds = [delay * 1000 for delay in delays]
    p50, p99 = (statistics.quantiles(milliseconds, n=100)[n] for n in (49, 98))
    sys.stdout.write(
        f"{EVENTS_PER_S} events a second for {SECONDS} s, {LISTENERS} listeners\n"
        f"shown after: median {p50:.0f} ms, p99 {p99:.0f} ms, at most {max(milliseconds):.0f} ms\n"
        f"processor time a second: {quiet_s / (SECONDS + 1):.3f} s without listeners, "
        f"{busy_s / (SECONDS + 1):.3f} s with them\n"
    )


if __name__ == "__main__":
    main()
