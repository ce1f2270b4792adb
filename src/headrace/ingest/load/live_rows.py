"""Reads the rows of websites that somebody watches, ahead of the loader, on its thread."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from headrace.base.datetime_text import format_iso
from headrace.formats.arrow_batch import MISSING
from headrace.formats.event_ids import known_among
from headrace.ingest.load.batch import group_by_kind
from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.columns import TABLE_MAPPINGS, Columns
from headrace.ingest.load.deduplicate import deduplicate
from headrace.model.catalog import ERRORS, Kind, Table
from headrace.model.log_records import decode_record
from headrace.model.storage import STORAGE_TABLES, StoredTable
from headrace.ports.event_log import LOG_START, LogOffset, LogReader
from headrace.ports.ledger import Ledger
from headrace.ports.live import ErrorFingerprints, ErrorTexts, UnknownFingerprints

_READ_BYTES: Final = 1024 * 1024
MAX_BYTES: Final = 4 * _READ_BYTES
"""Of a log that are read at once. What is beyond, such as an import, is passed over."""

_LARGEST_EXACT_INTEGER: Final = 2.0**53

WebsiteRow = tuple[str, bytes]
"""A website, and the JSON of `{"table", "row"}`."""


class LiveRows:
    """Reads what is durable from the moment on at which a website is watched.

    An item that the loader will drop is in no row: the digests of earlier items are in the ledger
    up to where it has loaded, and in memory from there on. So `read` must be called before each
    load, with its ends, and `forget_loaded` after it.
    """

    def __init__(
        self,
        log: LogReader,
        ledger: Ledger,
        fingerprints: ErrorFingerprints | None = None,
    ) -> None:
        self._log = log
        self._ledger = ledger
        self._fingerprints = fingerprints or UnknownFingerprints()
        self._offsets: dict[str, LogOffset] = {}
        self._websites: dict[str, bytes] = {}  # with what a record of theirs contains
        self._new_digests: dict[bytes, int] = {}

    def watch(self, websites: Collection[str]) -> None:
        """Watch these websites from now on, and no others."""
        added = [website for website in websites if website not in self._websites]
        if not self._websites:
            self._offsets = dict(self._log.durable_offsets())
            self._new_digests = {}
        self._websites = {website: website.encode() for website in websites}
        if added:
            self._read_digests([website.encode() for website in added])

    def read(self, ends: Mapping[str, LogOffset]) -> tuple[list[WebsiteRow], bool]:
        """Return the rows that are new before these offsets, and whether they are all.

        Raises `OSError` and `StoreUnavailable`; then the same rows are read again.
        """
        if not self._websites:
            return [], True
        records: list[ReadRecord] = []
        is_complete = True
        for log in sorted(ends):
            start, end = self._offsets.get(log, LOG_START), ends[log]
            if self._log.size_between(log, after=start, until=end) > MAX_BYTES:
                is_complete = False
            elif start < end:
                records += self._records(log, start, end, list(self._websites.values()))
        rows = self._rows(records)
        self._offsets = {**self._offsets, **ends}
        return rows, is_complete

    def pass_over(self, ends: Mapping[str, LogOffset]) -> None:
        """Read nothing that is new before these offsets."""
        self._offsets = {**self._offsets, **ends}

    def forget_loaded(self) -> None:
        """Forget the digests of what was read: it is all loaded."""
        self._new_digests = {}

    def _read_digests(self, websites: Sequence[bytes]) -> None:
        """Note the items of websites that are not loaded yet and were not read for them."""
        stored = self._ledger.stored_offsets()
        records: list[ReadRecord] = []
        for log, end in self._offsets.items():
            start = stored.get(log, LOG_START)
            if self._log.size_between(log, after=start, until=end) <= MAX_BYTES:
                records += self._records(log, start, end, websites)
        self._new_digests.update(deduplicate(records, self._find_known).new_digests)

    def _rows(self, records: Sequence[ReadRecord]) -> list[WebsiteRow]:
        if not records:
            return []
        dedup = deduplicate(records, self._find_known)
        self._new_digests.update(dedup.new_digests)
        batches = group_by_kind(records, dedup, identity=self._ledger.identity())
        rows: list[WebsiteRow] = []
        for event_kind, batch in batches.items():
            if batch.items:
                mapping = TABLE_MAPPINGS[event_kind]
                columns = mapping.columns(batch)
                watched = [
                    index
                    for index, website in enumerate(columns["website_id"])
                    if website in self._websites
                ]
                generated = self._generated_columns(mapping.table, columns, watched)
                table = STORAGE_TABLES[mapping.table.name]
                rows += row_objects(table, columns, watched, generated)
        return rows

    def _generated_columns(
        self, table: Table, columns: Columns, indexes: Sequence[int]
    ) -> Mapping[str, Sequence[str | None]]:
        """Return the columns that the store computes, with a value for each of the rows."""
        if table is not ERRORS or not indexes:
            return {}
        texts = [
            ErrorTexts(*(columns[name][index] for name in ErrorTexts._fields)) for index in indexes
        ]
        return {"fingerprint": self._fingerprints.of(texts)}

    def _find_known(self, digests: Sequence[bytes]) -> Mapping[bytes, int]:
        return {
            **self._ledger.known_digests(digests),
            **known_among(self._new_digests, digests),
        }

    def _records(
        self, log: str, start: LogOffset, end: LogOffset, websites: Sequence[bytes]
    ) -> list[ReadRecord]:
        """Return the records that may have items of websites; those without are not decoded."""
        records: list[ReadRecord] = []
        offset = start
        while offset < end:
            chunk = self._log.read(log, after=offset, until=end, max_bytes=_READ_BYTES)
            for logged in chunk.records:
                if not any(website in logged.payload for website in websites):
                    continue
                try:
                    content = decode_record(logged.payload)
                except msgspec.MsgspecError:
                    continue  # the loader quarantines it
                records.append(ReadRecord(log, logged, content.received_ms, content))
            offset = chunk.end
        return records


def row_objects(
    table: StoredTable,
    columns: Columns,
    indexes: Sequence[int],
    generated: Mapping[str, Sequence[str | None]],
) -> list[WebsiteRow]:
    """Return the rows at these indexes as JSON, with all columns as queries show them.

    `properties` is the object that was sent; `generated` has a value for each of the indexes.
    """
    encode = msgspec.json.Encoder().encode
    rows: list[WebsiteRow] = []
    for position, index in enumerate(indexes):
        row = {
            column.name: _json_value(column.kind, columns[column.name][index])
            if column.name in columns
            else _json_value(column.kind, MISSING[column.kind])
            for column in table.shown_columns
        }
        row |= {name: values[position] for name, values in generated.items()}
        rows.append((columns["website_id"][index], encode({"table": table.name, "row": row})))
    return rows


def _json_value(kind: Kind, value: Any) -> Any:  # noqa: ANN401 - a value of a column
    match kind:
        case Kind.DATETIME:
            return format_iso(value)
        case Kind.IDENTIFIER:
            return value.hex()
        case Kind.JSON:
            return msgspec.Raw(value) if value else None
        case Kind.NUMBER if value is not None:
            is_whole = float(value).is_integer() and abs(value) <= _LARGEST_EXACT_INTEGER
            return int(value) if is_whole else value
        case _:
            return value
