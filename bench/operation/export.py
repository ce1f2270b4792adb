"""Measures exports beside the engine's own `SELECT … FORMAT` of the same columns and rows.

Run: .venv/bin/python -m bench.operation.export --folder DIR [--events 1000000] [--runs 3]

Exports the largest website of a data set (`bench.dataset.generate`) in this process, through the
product's chunks and joiners, and the same rows by one bare select. Both run in turn; the figures
are the medians. CPU is that of the whole process, so it is meaningful on a busy machine as well.
The local socket between processes is not part of it.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.dataset.generate import ensure_dataset
from bench.queries.sessions import cpu_s
from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.base.logs import get_logger
from headrace.model.catalog import EVENTS, Kind
from headrace.model.export import ExportFormat, ExportRequest, LogEnd, Watermark
from headrace.model.storage import STORAGE_TABLES
from headrace.model.tenancy import WebsiteId
from testing.exports import InProcessExportStore, export_service

BARE_FORMATS = {
    ExportFormat.PARQUET: "Parquet",
    ExportFormat.NDJSON: "JSONEachRow",
    ExportFormat.CSV: "CSV",
    ExportFormat.ARROW: "ArrowStream",
}
WATERMARK = Watermark(
    "bench", (1 << 48) - 1, tuple(LogEnd(number, 1 << 20, 0) for number in range(3))
)
"""After every row; as many logs as a machine of two workers has."""


class Cost(NamedTuple):
    """CPU and wall time of one export, in seconds, and its bytes."""

    cpu_s: float
    wall_s: float
    bytes: int


def measured(work: Callable[[], int]) -> Cost:
    """Run work that returns a number of bytes."""
    before_s, started_s = cpu_s(), time.perf_counter()
    size = work()
    return Cost(cpu_s() - before_s, time.perf_counter() - started_s, size)


def export(session: ChdbSession, request: ExportRequest) -> int:
    """Export as the product does and return the size; the bytes are dropped."""

    async def run() -> int:
        service = export_service(InProcessExportStore(session, WATERMARK))
        async with service.begin(request) as running:
            return sum([len(piece.data) async for piece in running.pieces()])

    return asyncio.run(run())


def bare_select(session: ChdbSession, request: ExportRequest) -> int:
    """Select the same values by one statement."""
    columns = ", ".join(
        f"lower(hex({column.name})) AS {column.name}"
        if column.kind is Kind.IDENTIFIER
        else column.name
        for column in STORAGE_TABLES[request.table].shown_columns
    )
    sql = (
        f"SELECT {columns} FROM {request.table} "
        f"WHERE website_id = {{website:String}} SETTINGS max_result_bytes = 0"
    )
    parameters = EncodedParameters({"website": request.website_id})
    return len(session.fetch(sql, parameters, BARE_FORMATS[request.format]))


def report(rows: int, export_format: ExportFormat, ours: list[Cost], bare: list[Cost]) -> str:
    """Return one line: rows for each second of CPU, and the ratios to the bare select."""
    cpu, bare_cpu = (statistics.median(one.cpu_s for one in costs) for costs in (ours, bare))
    wall = statistics.median(a.wall_s / b.wall_s for a, b in zip(ours, bare, strict=True))
    ratio = statistics.median(a.cpu_s / b.cpu_s for a, b in zip(ours, bare, strict=True))
    return (
        f"{export_format.value:8} {rows / cpu:12,.0f} {rows / bare_cpu:12,.0f} {ratio:7.2f} "
        f"{wall:7.2f} {rows / min(one.wall_s for one in ours):12,.0f} {ours[0].bytes / rows:8.0f}"
    )


def main() -> None:
    """Measure every format and print a line for each."""
    parser = argparse.ArgumentParser(description="Exports beside the engine's own select.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    dataset = ensure_dataset(arguments.folder, events=arguments.events)
    chdb = ChdbInstance(dataset.paths.store, log=get_logger())
    chdb.open()
    session = chdb.session()
    website = WebsiteId(dataset.websites[0])
    ((rows,),) = session.execute(
        "SELECT count() FROM events WHERE website_id = {website:String}", {"website": website}
    )
    print(f"{int(rows):,} rows of {len(STORAGE_TABLES[EVENTS.name].shown_columns)} columns")
    print("format     rows/cpu s   bare       CPU   wall  best rows/s  bytes/row", flush=True)
    for export_format in BARE_FORMATS:
        request = ExportRequest(website_id=website, table=EVENTS.name, format=export_format)
        ours, bare = list[Cost](), list[Cost]()
        for _ in range(arguments.runs):
            ours.append(measured(lambda: export(session, request)))  # noqa: B023 - run at once
            bare.append(measured(lambda: bare_select(session, request)))  # noqa: B023
        print(report(int(rows), export_format, ours, bare), flush=True)
    session.close()
    chdb.close()


if __name__ == "__main__":
    main()
