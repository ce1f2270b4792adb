"""Measures imports: decoding and validation alone, and the whole command beside a service.

Run: .venv/bin/python -m bench.operation.imports [--events 200000] [--website ID --data DIR]

Without a website it decodes generated lines of an export (NDJSON) and encodes the records of the
log, in this process. With a website of a running service it imports them as the command does: the
engine process loads meanwhile, and each chunk is in the store before the next one is appended. CPU
is that of this process, so it is meaningful on a busy machine as well.
"""

import argparse
import gc
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.queries.sessions import cpu_s
from headrace.adapters.imports.line_files import LineFile
from headrace.base.settings import load_settings
from headrace.ingest.imports.exported_rows import ExportedRowDecoder
from headrace.ingest.imports.importer import make_record
from headrace.model.imports import ImportFormat, ImportRequest
from headrace.model.log_records import EventKind, encode_record
from headrace.model.tenancy import WebsiteId
from headrace.wiring.commands.import_sources import open_files
from headrace.wiring.commands.imports import import_files

START_MS = 1_767_225_600_000
EVERY_MS = 250


def exported_rows(count: int) -> Iterator[bytes]:
    """Return lines as an export writes them: page views with properties and a visitor."""
    rng = random.Random(1)
    for number in range(count):
        at_ms = START_MS + number * EVERY_MS
        seconds, milliseconds = divmod(at_ms, 1000)
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        visitor = rng.randrange(50_000)
        row = {
            "id": (at_ms << 80 | 7 << 64 | 1 << 40 | number * 300).to_bytes(16, "big").hex(),
            "website_id": "web_other",
            "event_name": "screen_view",
            "anonymous_id": f"anon_{visitor:032x}",
            "session_id": f"sess_{visitor:016x}",
            "url": f"https://shop.example/products/{visitor % 997}?utm_source=news",
            "path": f"/products/{visitor % 997}",
            "title": f"Product {visitor % 997}",
            "referrer": "https://news.example/",
            "country": "DE",
            "browser_name": "Firefox",
            "browser_version": "122.0",
            "os_name": "Windows",
            "os_version": "10",
            "device_type": "desktop",
            "language": "de-DE",
            "utm_source": "news",
            "time": f"{text}.{milliseconds:03}Z",
            "received_at": f"{text}.{milliseconds:03}Z",
            "is_bot": False,
            "time_on_page": None,
            "load_time": 812.5,
            "properties": {"plan": "pro", "load_time": 812.5, "items": ["a", "b"], "n": number},
        }
        yield msgspec.json.encode(row) + b"\n"


def decode(file: LineFile) -> int:
    """Decode a file and encode its records; return the number of items."""
    decoder = ExportedRowDecoder(EventKind.EVENTS, "web_a")
    items = 0
    for chunk in file.chunks():
        decoded = decoder.decode(chunk, now_ms=START_MS * 2)
        encode_record(make_record(EventKind.EVENTS, decoded.items, START_MS * 2))
        items += len(decoded.items)
    return items


def run_import(data: str, website: str, path: Path) -> int:
    """Import a file; return the number of stored rows."""
    request = ImportRequest(
        format=ImportFormat.NDJSON, website_id=WebsiteId(website), event_kind=EventKind.EVENTS
    )
    with open_files(request.format, [path]) as sources:
        totals = import_files(
            load_settings({"data_dir": data}),
            request,
            sources,
            by="cli tests",
            on_refused=lambda refused: print(refused.reason),
            progress=lambda _done, _total: None,
        )
    return totals.stored


def main() -> None:
    """Measure, and print one line."""
    parser = argparse.ArgumentParser(description="Events a second of an import.")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--website")
    parser.add_argument("--data", default="data")
    arguments = parser.parse_args()
    gc.set_threshold(50_000, 20, 100)  # as the command does
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.ndjson"
        with path.open("wb") as lines:
            lines.writelines(exported_rows(arguments.events))
        before_s, started_s = cpu_s(), time.perf_counter()
        if arguments.website:
            items = run_import(arguments.data, arguments.website, path)
        else:
            items = decode(LineFile(path))
        wall_s, spent_s = time.perf_counter() - started_s, cpu_s() - before_s
        size = path.stat().st_size / arguments.events
    print(
        f"{items:,} events of {size:.0f} bytes: {items / wall_s:,.0f} a second, "
        f"{spent_s / max(items, 1) * 1e6:.1f} µs of CPU each in this process"
    )


if __name__ == "__main__":
    main()
