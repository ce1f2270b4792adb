"""The tables and columns of the contract, restated."""

from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

Kind = Literal["text", "number", "datetime", "boolean", "json"]


@dataclass(frozen=True)
class Column:
    """The permitted uses of a column: F and A of the contract."""

    kind: Kind
    filterable: bool = True
    aggregatable: bool = False


def _columns(
    *,
    hidden: str,
    texts: str,
    datetimes: str,
    booleans: str,
    measures: str = "",
    numbers: str = "",
) -> dict[str, Column]:
    return {
        **{name: Column("text", filterable=False) for name in hidden.split()},
        **{name: Column("text") for name in texts.split()},
        **{name: Column("datetime") for name in datetimes.split()},
        **{name: Column("boolean") for name in booleans.split()},
        **{name: Column("number") for name in numbers.split()},
        **{name: Column("number", aggregatable=True) for name in measures.split()},
    }


_LOCATION = "country region city"
_USER_AGENT = "browser_name browser_version os_name os_version device_type"
_UTM = "utm_source utm_medium utm_campaign utm_term utm_content"

TABLES: dict[str, dict[str, Column]] = {
    "events": _columns(
        hidden="id website_id",
        texts="event_name namespace source anonymous_id session_id profile_id url path title"
        f" referrer {_LOCATION} {_USER_AGENT} language timezone "
        f"screen_resolution viewport_size {_UTM} currency",
        datetimes="time received_at",
        booleans="is_bot",
        measures="time_on_page scroll_depth interaction_count page_count load_time dom_ready_time"
        " dom_interactive ttfb render_time value",
    ),
    "sessions": _columns(
        hidden="",
        texts=f"session_id anonymous_id entry_path exit_path referrer {_LOCATION}"
        f" browser_name os_name device_type language {_UTM}",
        datetimes="start_time end_time",
        booleans="is_bounce",
        measures="duration page_views event_count",
    ),
    "profiles": _columns(
        hidden="",
        texts=f"anonymous_id referrer {_UTM} {_LOCATION} browser_name os_name device_type language",
        datetimes="first_seen last_seen",
        booleans="",
        measures="session_count event_count page_views",
    ),
    "errors": _columns(
        hidden="id website_id stack",
        texts="message fingerprint level error_type filename path url anonymous_id session_id"
        f" {_LOCATION} {_USER_AGENT}",
        datetimes="time",
        booleans="is_bot",
        numbers="lineno colno",
    ),
    "performance": _columns(
        hidden="id website_id",
        texts=f"metric_name path url anonymous_id session_id {_LOCATION} {_USER_AGENT}",
        datetimes="time",
        booleans="is_bot",
        measures="metric_value",
    ),
}

ALIASES = {"error_spans": "errors", "web_vitals_spans": "performance"}


def find_column(table: str, name: str) -> Column | None:
    """Find a column; only events have `properties.KEY`, KEY of 1 to 256 characters."""
    prefix, _, key = name.partition("properties.")
    if table == "events" and prefix == "" and 1 <= len(key) <= 256:
        return Column("json", aggregatable=True)
    return TABLES[table].get(name)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether a JSON value is an array."""
    return isinstance(value, list)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)
