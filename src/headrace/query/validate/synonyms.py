"""Words of SQL, of other products and of everyday language for the names of a query.

They occur in suggestions alone: a query is valid only with the names themselves. Words are lower
case, without underscores, hyphens and spaces; some stand for two names.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from headrace.base.closest_match import normalize

Synonyms = Mapping[str, Sequence[Sequence[str]]]
"""What a word may mean, the likeliest first: each is one name, or several that belong together."""

NO_SYNONYMS: Final[Synonyms] = {}


def meaning_of(word: str, synonyms: Synonyms, known: Collection[str]) -> Sequence[str]:
    """Return the names that a word stands for, all of them known ones; none for other words."""
    for names in synonyms.get(normalize(word), ()):
        if all(name in known for name in names):
            return names
    return ()


def _of(words_by_names: Mapping[str, str]) -> Synonyms:
    """Return the names by word, of the words by name or by names with a blank between them."""
    meanings: dict[str, list[Sequence[str]]] = {}
    for names, words in words_by_names.items():
        for word in words.split():
            meanings.setdefault(word, []).append(names.split())
    return meanings


OPERATOR_SYNONYMS: Final = _of(
    {
        "eq": "= == === is equal equals equalto isequalto",
        "ne": "!= !== <> not isnot isnt neq notequal notequals notequalto doesnotequal",
        "gt": "> greater greaterthan morethan above after",
        "gte": ">= => ge gteq atleast greaterorequal greaterthanorequal greaterthanorequalto",
        "lt": "< less lessthan below before",
        "lte": "<= =< le lteq atmost lessorequal lessthanorequal lessthanorequalto",
        "gte lte": "between",
        "contains": "like ilike icontains include includes substring has",
        "not_contains": "notlike notilike exclude excludes doesnotinclude doesnotcontain",
        "starts_with": "prefix hasprefix beginswith beginwith ^=",
        "not_starts_with": "notbeginswith doesnotstartwith",
        "ends_with": "suffix hassuffix $=",
        "not_ends_with": "doesnotendwith",
        "matches": "~ ~* =~ regex regexp rlike match matchesregex similarto",
        "not_matches": "!~ !~* notregex notregexp notmatch doesnotmatch",
        "in": "oneof isoneof any anyof isanyof isin",
        "not_in": "nin !in isnotin noneof notoneof isnotoneof",
        "is_set": "exists exist notnull isnotnull notempty isnotempty known isknown set isdefined",
        "is_not_set": (
            "notexists doesnotexist null isnull empty isempty notset unset missing unknown"
        ),
    }
)

TABLE_SYNONYMS: Final = _of(
    {
        "events": "pageviews views hits actions clicks",
        "sessions": "visits",
        "profiles": "users visitors people",
        "errors": "exceptions crashes",
        "performance": "vitals webvitals",
    }
)

AGGREGATE_SYNONYMS: Final = _of(
    {
        "count": "rows countall",
        "uniq": "distinct countdistinct distinctcount unique uniques uniquecount nunique dc",
        "sum": "total",
        "avg": "average mean",
        "max": "maximum highest",
        "min": "minimum lowest",
        "earliest": "first",
        "latest": "last",
        **{f"p{n}": f"percentile{n} perc{n} {n}thpercentile q{n}" for n in (75, 90, 95, 99)},
        "p50": "median percentile50",
    }
)

GRANULARITY_SYNONYMS: Final = _of(
    {
        "hourly": "h 1h hours 60m",
        "daily": "d 1d 24h days date",
        "weekly": "w 1w 7d",
        "monthly": "mo 1mo",
    }
)

PERIOD_SYNONYMS: Final = _of(
    {
        "previous_period": (
            "previous prev prior period before last lastperiod previousday previousweek"
            " previousmonth lastweek lastmonth dod wow mom"
        ),
        "previous_year": "year lastyear yoy yearoveryear sameperiodlastyear",
    }
)

TIME_SYNONYMS: Final = _of(
    {"hourly": "hour", "daily": "date day", "weekly": "week", "monthly": "month"}
)
"""What people group by for a row for each bucket of time."""

TYPE_SYNONYMS: Final = _of(
    {
        "summary": "overview totals kpis visitors sessions",
        "timeseries": "trend chart daily hourly",
        "referrers": "sources channels",
        "campaigns": "utm",
        "countries": "locations geo",
        "systems": "os oses operatingsystems platforms",
        "events": "goals conversions",
        "vitals": "performance webvitals",
        "errors": "exceptions",
        "online": "realtime live active current",
    }
)

DIRECTION_SYNONYMS: Final = _of({"asc": "ascending", "desc": "descending"})

KEY_SYNONYMS: Final = _of(
    {
        "table": "from",
        "selects": "metrics measures aggregates aggregations columns fields",
        "types": "metrics reports",
        "filters": "where conditions",
        "groupBy": "by breakdown breakdowns dimensions",
        "startDate": "from since start begin datefrom",
        "endDate": "to until till end dateto",
        "startDate endDate": "daterange timerange",
        "lastDays": "days last",
        "timezone": "tz",
        "granularity": "interval bucket resolution",
        "direction": "order sort dir asc desc ascending descending",
        "orderBy": "order sort sortby",
        "limit": "pagesize size",
        "offset": "skip",
        "compare": "comparison compareto comparewith",
        "operator": "op operation comparison",
        "aggregate": "op agg func fn function",
        "alias": "as name label",
        "field": "column col name key property by",
        "or": "any anyof",
        "and": "all allof",
    }
)

COLUMN_SYNONYMS: Final = _of(
    {
        "event_name": "name eventtype",
        "metric_name": "name metric",
        "metric_value": "value",
        "path": "page pathname pagepath",
        "entry_path": "path page landingpage entrypage",
        "exit_path": "exitpage",
        "url": "host hostname domain",
        "profile_id": "user userid customerid",
        "anonymous_id": "user userid visitor visitorid clientid distinctid",
        "os_name": "os",
        "value": "revenue amount price",
        "error_type": "type name",
        "time": "date datetime createdat",
        "start_time": "date datetime time createdat",
        "first_seen": "date datetime time createdat",
    }
)
