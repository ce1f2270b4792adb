"""Shared erasures beside websites and keys, in the same database."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, Row, Table, and_, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from headrace.adapters.directory.audit_lines import record_change
from headrace.adapters.directory.connection import DirectoryDatabase
from headrace.adapters.directory.statements import insert_row
from headrace.adapters.directory.tables import ERASURE_KEY, ERASURE_PARTS, ERASURES, MACHINES
from headrace.adapters.directory.transactions import Author, reading, writing
from headrace.formats.audited_changes import forgotten_machine_change
from headrace.model.erasure import SelectorKind, Subject
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.erasure import Erasure
from headrace.ports.rows.shared_erasures import ErasurePart, Machine

_ONLY_ROW: Final = 1


class SqlSharedErasures:
    """The `SharedErasures` port over the directory's database. Safe to use from several threads.

    Raises `OperatorError`. No method increments the revision: workers read none of this.
    """

    def __init__(self, database: DirectoryDatabase, author: Author) -> None:
        self._database = database
        self._author = author

    def agree_on_key(self, own: bytes) -> bytes:
        """Return the key of all machines; see `SharedErasures.agree_on_key`."""
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            found = transaction.connection.scalar(select(ERASURE_KEY.c.key))
            if found is None:
                transaction.connection.execute(insert(ERASURE_KEY).values(id=_ONLY_ROW, key=own))
        return own if found is None else bytes(found)

    def note_seen(self, machine_id: str) -> None:
        """Note that a machine runs."""
        now_ms = self._author.clock.now_ms()
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            _put(
                transaction.connection,
                MACHINES,
                MACHINES.c.id == machine_id,
                {"seen_ms": now_ms},
                {"id": machine_id, "first_seen_ms": now_ms},
            )

    def machines(self) -> tuple[Machine, ...]:
        """Return all machines that ever ran."""
        with reading(self._database) as connection:
            rows = connection.execute(select(MACHINES)).all()
        return tuple(Machine(row.id, row.first_seen_ms, row.seen_ms) for row in rows)

    def forget_machine(self, machine: Machine) -> bool:
        """Note that a machine is gone for good; see `SharedErasures.forget_machine`."""
        is_unchanged = and_(MACHINES.c.id == machine.id, MACHINES.c.seen_ms == machine.seen_ms)
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            changed = transaction.connection.execute(
                update(MACHINES).where(is_unchanged).values(first_seen_ms=0, seen_ms=0)
            )
            if not changed.rowcount:
                return False
            record_change(transaction, forgotten_machine_change(machine))
        return True

    def announce(self, erasure: Erasure) -> None:
        """Let all machines know an erasure; see `SharedErasures.announce`."""
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            is_known = select(ERASURES.c.id).where(ERASURES.c.id == erasure.id)
            if transaction.connection.scalar(is_known) is None:
                insert_row(transaction, ERASURES, _values(erasure))

    def ids(self) -> frozenset[str]:
        """Return the ids of all erasures."""
        with reading(self._database) as connection:
            return frozenset(connection.scalars(select(ERASURES.c.id)))

    def get(self, erasure_id: str) -> Erasure | None:
        """Return an erasure; see `SharedErasures.get`."""
        with reading(self._database) as connection:
            found = select(ERASURES).where(ERASURES.c.id == erasure_id)
            row = connection.execute(found).first()
        return None if row is None else _read(row)

    def put_part(self, erasure_id: str, part: ErasurePart) -> None:
        """Store how far a machine is with an erasure."""
        names = {"erasure_id": erasure_id, "machine_id": part.machine_id}
        values = {"clean_ms": part.clean_ms, "done_ms": part.done_ms, "rows": dict(part.rows)}
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            _put(
                transaction.connection,
                ERASURE_PARTS,
                and_(*(ERASURE_PARTS.c[name] == value for name, value in names.items())),
                values,
                names,
            )

    def parts(self, erasure_id: str) -> tuple[ErasurePart, ...]:
        """Return the parts of an erasure."""
        with reading(self._database) as connection:
            found = select(ERASURE_PARTS).where(ERASURE_PARTS.c.erasure_id == erasure_id)
            rows = connection.execute(found).all()
        return tuple(
            ErasurePart(
                machine_id=row.machine_id,
                clean_ms=row.clean_ms,
                done_ms=row.done_ms,
                rows=row.rows,
            )
            for row in rows
        )

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._database.read_engine.dispose()


def _put(
    connection: Connection,
    table: Table,
    condition: ColumnElement[bool],
    values: Mapping[str, object],
    names: Mapping[str, object],
) -> None:
    """Change a row, or insert it with its names."""
    changed = connection.execute(update(table).where(condition).values(**values))
    if not changed.rowcount:
        connection.execute(insert(table).values(**names, **values))


def _values(erasure: Erasure) -> Mapping[str, object]:
    """Return the column values of an erasure, without the revision."""
    return {
        "id": erasure.id,
        "website_id": erasure.website_id,
        "kind": erasure.kind.value,
        "subjects": [[subject.kind.value, subject.digest] for subject in erasure.subjects],
        "author": erasure.by,
        "requested_ms": erasure.requested_ms,
    }


def _read(row: Row[Any]) -> Erasure:
    return Erasure(
        id=row.id,
        website_id=WebsiteId(row.website_id),
        kind=SelectorKind(row.kind),
        subjects=tuple(Subject(SelectorKind(kind), digest) for kind, digest in row.subjects),
        by=row.author,
        requested_ms=row.requested_ms,
    )
