"""Runs a ClickHouse server from libchdb.so, in this process, until it is killed.

`python run.py LIBRARY DIRECTORY CONFIGURATION HTTP_PORT TCP_PORT`. The library contains all of
ClickHouse. Its `clickhouse-local` opens the ports on request of a query, and a sleeping query keeps
the process alive.

Where no person types, `clickhouse-local` aborts as soon as a connection ends with an error, for
example when a client resets it within a request; `clickhouse-server` logs the error and lives on.
Therefore this program asks for the interactive mode, which needs a terminal.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_STDIN = 0
_QUERY = (
    "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; "
    "SELECT sleepEachRow(3) FROM numbers(1000000) "
    "SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0 FORMAT Null"
)


def main(library: str, directory: str, configuration: str, http_port: str, tcp_port: str) -> None:
    """Serve; does not return."""
    options = (f"--http_port={http_port}", f"--tcp_port={tcp_port}", "--listen_host=127.0.0.1")
    serve_forever(ctypes.CDLL(library), directory, configuration, options)


def serve_forever(
    library: ctypes.CDLL, directory: str, configuration: str, options: Sequence[str]
) -> None:
    """Serve with a loaded library; does not return. `options` override the configuration."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # no server outlives its tests
    _, terminal = os.openpty()
    os.dup2(terminal, _STDIN)
    words = (
        "clickhouse",
        "--interactive",
        "--progress=off",
        f"--path={directory}",
        f"--config-file={configuration}",
        f"--query={_QUERY}",
        "--",
        *options,
    )
    arguments = (ctypes.c_char_p * (len(words) + 1))(*map(str.encode, words), None)
    library.query_stable_v2(len(words), arguments)
    sys.exit("the server ended")


if __name__ == "__main__":
    main(*sys.argv[1:])
