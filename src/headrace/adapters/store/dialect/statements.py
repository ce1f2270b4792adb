"""The statements of the store's layout as data, and the renderer that writes their SQL.

A statement names tables, columns, engines and settings. A `Target` says what a server adds to
them: the database of the names, ON CLUSTER, replicated engines. SQL text is made here, once.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

Settings: TypeAlias = Mapping[str, int | str]


class TableEngine(Struct, frozen=True):
    """An engine of the MergeTree family: its name and the SQL of its arguments."""

    name: str
    arguments: tuple[str, ...] = ()


MERGE_TREE: Final = TableEngine("MergeTree")


class CreateTable(Struct, frozen=True, kw_only=True):
    """Creates a table unless it exists. `columns` are SQL: name, type and default."""

    name: str
    columns: tuple[str, ...]
    engine: TableEngine = MERGE_TREE
    order_by: str
    settings: Settings = {}


class CreateView(Struct, frozen=True, kw_only=True):
    """Creates a view unless it exists. `columns` are SQL: expression and alias."""

    name: str
    columns: tuple[str, ...]
    projection_of: str
    projection: str


class AlterTable(Struct, frozen=True, kw_only=True):
    """Changes a table. `change` is SQL, to which the settings belong.

    `is_mutation` marks a change that rewrites parts: a server continues it after its client has
    gone, and `system.mutations` then lists `change` as its command.
    """

    name: str
    change: str
    settings: Settings = {}
    is_mutation: bool = False


class ModifySettings(Struct, frozen=True):
    """Changes settings of a table."""

    name: str
    settings: Settings


Statement: TypeAlias = CreateTable | CreateView | AlterTable | ModifySettings


class Replication(Struct, frozen=True, kw_only=True):
    """What makes tables of a cluster's nodes replicas of each other.

    `path` names a table in Keeper and `replica` a node; both are SQL string literals.
    """

    path: str
    replica: str


class Target(Struct, frozen=True, kw_only=True):
    """Where statements run.

    An empty `database` is the one that the connection uses. `view_database` is SQL for the
    database that a view reads: a view is evaluated within the database of its caller.
    `replaced_settings` has other settings in place of those of some names.
    """

    database: str = ""
    cluster: str = ""
    view_database: str = "currentDatabase()"
    replication: Replication | None = None
    replaced_settings: Mapping[str, Settings] = {}


CHDB_TARGET: Final = Target()


def render(statement: Statement, target: Target = CHDB_TARGET) -> str:
    """Return the SQL of a statement."""
    match statement:
        case CreateTable():
            return _render_table(statement, target)
        case CreateView():
            return _render_view(statement, target)
        case AlterTable():
            settings = f" SETTINGS {join_settings(statement.settings)}" * bool(statement.settings)
            return f"ALTER TABLE {_object(statement.name, target)} {statement.change}{settings}"
        case ModifySettings():
            settings = join_settings(dict(_settings(statement.settings, target)))
            return f"ALTER TABLE {_object(statement.name, target)} MODIFY SETTING {settings}"
    assert_never(statement)


def join_settings(settings: Settings) -> str:
    """Return settings as SETTINGS and MODIFY SETTING list them."""
    return ", ".join(
        f"{name} = {value}" if isinstance(value, int) else f"{name} = '{value}'"
        for name, value in settings.items()
    )


def on_cluster(cluster: str) -> str:
    """Return the clause that runs a statement on every node; nothing without a cluster."""
    return f" ON CLUSTER `{cluster}`" if cluster else ""


def _render_table(table: CreateTable, target: Target) -> str:
    columns = ",\n".join(f"    {column}" for column in table.columns)
    settings = dict(_settings(table.settings, target))
    return (
        f"CREATE TABLE IF NOT EXISTS {_object(table.name, target)}\n(\n{columns}\n)\n"
        f"ENGINE = {_engine(table.engine, target.replication)}\nORDER BY {table.order_by}"
        + f"\nSETTINGS {join_settings(settings)}"
        * bool(settings)
    )


def _render_view(view: CreateView, target: Target) -> str:
    columns = ",\n    ".join(view.columns)
    return (
        f"CREATE VIEW IF NOT EXISTS {_object(view.name, target)} AS\nSELECT\n    {columns}\n"
        f"FROM mergeTreeProjection({target.view_database}, "
        f"'{view.projection_of}', '{view.projection}')"
    )


def _object(name: str, target: Target) -> str:
    database = f"`{target.database}`." if target.database else ""
    return f"{database}`{name}`{on_cluster(target.cluster)}"


def _engine(engine: TableEngine, replication: Replication | None) -> str:
    if replication is None:
        return engine.name + (f"({', '.join(engine.arguments)})" if engine.arguments else "")
    arguments = (replication.path, replication.replica, *engine.arguments)
    return f"Replicated{engine.name}({', '.join(arguments)})"


def _settings(settings: Settings, target: Target) -> Iterator[tuple[str, int | str]]:
    for name, value in settings.items():
        yield from target.replaced_settings.get(name, {name: value}).items()
