"""Drives a server with `wrk` at full speed, and measures the CPU of the generator itself."""

import resource
import secrets
import shutil
import subprocess
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.load.bodies import ID_PLACEHOLDER

_SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
{authorization}
local bodies = {{
{bodies}
}}
local requests, place, number, run = {{}}, 0, 0, ""
function init(args)
  run = args[1]
  for index, body in ipairs(bodies) do requests[index] = wrk.format(nil, nil, nil, body) end
end
{request}
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('RESULT {{"requests":%d,"seconds":%f,"refused":%d,"broken":%d,' ..
    '"p50_ms":%f,"p99_ms":%f}}\\n', summary.requests, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""
_READY_REQUEST = """
function request()
  place = place % #requests + 1
  return requests[place]
end
"""
# Each event gets an id that is unique across runs: the run's number and a counter.
_REQUEST_WITH_IDS = """
local function draw()
  number = number + 1
  return run .. "-" .. number
end
function request()
  place = place % #bodies + 1
  return wrk.format(nil, nil, nil, (string.gsub(bodies[place], "ID_PLACE", draw)))
end
""".replace("ID_PLACE", ID_PLACEHOLDER)
_REQUEST_WITH_A_FRESH_HEAD = """
function request()
  place, number = place % #bodies + 1, number + 1
  wrk.headers["X-Number"] = run .. "-" .. number
  return wrk.format(nil, nil, nil, bodies[place])
end
"""


class WrkResult(Struct, frozen=True, kw_only=True):
    """Results of wrk. All responses were 200. `generator_share` is its CPU time over wall time."""

    requests: int
    seconds: float
    refused: int
    broken: int
    p50_ms: float
    p99_ms: float
    generator_share: float = 0.0

    @property
    def per_s(self) -> float:
        """Responses per second."""
        return self.requests / self.seconds


class Load(Struct, frozen=True):
    """What is sent, over how many connections, for how long. Bodies are used in turn.

    With `has_fresh_heads` every request head is different.
    """

    bodies: tuple[bytes, ...]
    connections: int
    seconds: int
    has_fresh_heads: bool = False


def check_wrk() -> None:
    """Fail with a clear message if wrk is not installed."""
    if shutil.which("wrk") is None:
        raise SystemExit("the benchmark needs wrk: apt-get install wrk")


def run_wrk(url: str, load: Load, folder: Path, *, authorization: str = "") -> WrkResult:
    """Send each request as soon as the previous response arrives. Every response must be a 200."""
    script = folder / "load.lua"
    script.write_text(_write_script(load, authorization))
    command = ["wrk", "-t1", f"-c{load.connections}", f"-d{load.seconds}s"]
    command += ["--latency", "-s", str(script)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, url, "--", str(secrets.randbelow(2**62))],
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = msgspec.json.decode(done.stdout.rpartition("RESULT ")[2], type=WrkResult)
    assert (result.refused, result.broken) == (0, 0), done.stdout
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return msgspec.structs.replace(result, generator_share=spent_s / result.seconds)


def _write_script(load: Load, authorization: str) -> str:
    return _SCRIPT.format(
        authorization=f'wrk.headers["Authorization"] = "{authorization}"' if authorization else "",
        bodies=",\n".join(f"[==[{body.decode()}]==]" for body in load.bodies),
        request=_write_request(load),
    )


def _write_request(load: Load) -> str:
    if any(ID_PLACEHOLDER.encode() in body for body in load.bodies):
        return _REQUEST_WITH_IDS
    return _REQUEST_WITH_A_FRESH_HEAD if load.has_fresh_heads else _READY_REQUEST
