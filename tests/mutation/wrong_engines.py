"""Wrong engines by hand: each is one mistake that somebody could make, as a change of one text."""

from typing import NamedTuple

QUERY = "src/headrace/query"
CONDITIONS = f"{QUERY}/sql/conditions.py"
COMPILE = f"{QUERY}/sql/compile.py"
TOP = f"{QUERY}/sql/top_groups.py"
RESULT = f"{QUERY}/plan_result.py"
FILL = f"{QUERY}/gap_fill.py"
DATES = f"{QUERY}/validate/dates.py"
COMPARE = f"{QUERY}/validate/compare.py"
BUCKETS = f"{QUERY}/sql/time_buckets.py"
AGGREGATES = f"{QUERY}/sql/aggregates.py"
BOTS = f"{QUERY}/sql/bots.py"
FUNNEL = f"{QUERY}/funnel/compile.py"
FUNNEL_SERVICE = f"{QUERY}/funnel/service.py"
PATHS = f"{QUERY}/sql/paths.py"
RETENTION = f"{QUERY}/retention/compile.py"
RETENTION_CHECK = f"{QUERY}/retention/check.py"
RETENTION_SERVICE = f"{QUERY}/retention/service.py"
VALUES = f"{QUERY}/values/check.py"
VALUES_SERVICE = f"{QUERY}/values/service.py"
STANDARD = f"{QUERY}/standard/compile.py"
STANDARD_CHECK = f"{QUERY}/standard/check.py"
STANDARD_SERVICE = f"{QUERY}/standard/service.py"
DEFINITIONS = f"{QUERY}/standard/definitions.py"
SAVED = f"{QUERY}/saved/service.py"
TAG = f"{QUERY}/saved/entity_tag.py"
WATCHED = "src/headrace/adapters/query_scheduler/watched_ranges.py"
SCHEMA = f"{QUERY}/schema/statements.py"


class WrongEngine(NamedTuple):
    """`old` occurs once in the file, and is replaced by `new`. `area` decides which tests run."""

    area: str
    mistake: str
    file: str
    old: str
    new: str


WRONG_ENGINES: tuple[WrongEngine, ...] = (
    # Groups of filters and operators
    WrongEngine(
        "custom", "or is and", CONDITIONS, 'Conjunction.OR: " OR"', 'Conjunction.OR: " AND"'
    ),
    WrongEngine(
        "custom", "and is or", CONDITIONS, 'Conjunction.AND: " AND"', 'Conjunction.AND: " OR"'
    ),
    WrongEngine(
        "custom",
        "ends_with searches the beginning",
        CONDITIONS,
        'Operator.ENDS_WITH: "endsWith',
        'Operator.ENDS_WITH: "startsWith',
    ),
    WrongEngine(
        "custom",
        "not_ends_with leaves missing values out",
        CONDITIONS,
        "        Operator.NOT_ENDS_WITH,\n",
        "",
    ),
    WrongEngine(
        "custom",
        "not_matches leaves missing values out",
        CONDITIONS,
        "        Operator.NOT_MATCHES,\n",
        "",
    ),
    WrongEngine(
        "custom",
        "a dot matches a new line",
        CONDITIONS,
        'return f"(?-s){pattern}" if',
        "return pattern if",
    ),
    WrongEngine(
        "custom",
        "patterns beyond ASCII are searched by their first byte",
        CONDITIONS,
        'return f"(?-s){pattern}" if pattern.isascii() else f"(?-s){_NEVER_FOUND}|{pattern}"',
        'return f"(?-s){pattern}"',
    ),
    WrongEngine(
        "custom",
        "the empty text is set",
        CONDITIONS,
        "Kind.TEXT: \"({column} != '')\"",
        'Kind.TEXT: "true"',
    ),
    WrongEngine(
        "custom",
        "an empty property is set",
        CONDITIONS,
        '"ifNull({column} != \'\\"\\"\', false)"',
        '"isNotNull({column})"',
    ),
    # Filters of selects, and bots
    WrongEngine(
        "custom",
        "filters of a select are joined by or",
        AGGREGATES,
        'joined = " AND ".join([*own, *conditions])',
        'joined = " OR ".join([*own, *conditions])',
    ),
    WrongEngine(
        "custom",
        "a select that names bots shows them to all selects",
        BOTS,
        "tuple(() if lifts else (NOT_A_BOT,) for lifts in lifting)",
        "tuple(() for lifts in lifting)",
    ),
    WrongEngine(
        "custom",
        "a filter on bots of a select is no exception",
        BOTS,
        "    if not any(lifting):\n",
        "    if True:\n",
    ),
    WrongEngine(
        "custom",
        "p75 is p90",
        AGGREGATES,
        'Aggregate.P75: _percentile("0.75")',
        'Aggregate.P75: _percentile("0.9")',
    ),
    WrongEngine(
        "custom",
        "the good threshold is not good",
        AGGREGATES,
        'GOOD_SHARE: _share(f"{{column}} <= {_GOOD}")',
        'GOOD_SHARE: _share(f"{{column}} < {_GOOD}")',
    ),
    WrongEngine(
        "custom",
        "unknown metrics count for shares",
        AGGREGATES,
        'condition=f"{_RATED} AND isNotNull({{column}})"',
        'condition="isNotNull({column})"',
    ),
    WrongEngine(
        "custom",
        "latest is earliest",
        AGGREGATES,
        'Aggregate.LATEST: Form((Part("max"',
        'Aggregate.LATEST: Form((Part("min"',
    ),
    # Having
    WrongEngine(
        "custom",
        "null matches every condition of having",
        COMPILE,
        "'true' if planned.operator is Operator.NE else 'false'",
        "'true'",
    ),
    WrongEngine(
        "custom",
        "conditions of having are joined by or",
        COMPILE,
        'clause("HAVING", " AND", _having_conditions',
        'clause("HAVING", " OR", _having_conditions',
    ),
    WrongEngine(
        "custom",
        "the row of totals is never filtered",
        RESULT,
        "kept = [row for row in rows if matches_having(plan, row)]",
        "kept = list(rows)",
    ),
    WrongEngine(
        "custom",
        "having names the select before",
        COMPILE,
        "columns[first_select(plan) :], parameters)\n    if plan.others",
        "columns[first_select(plan) - 1 :], parameters)\n    if plan.others",
    ),
    # Weeks and months
    WrongEngine("custom", "weeks begin on Sunday", BUCKETS, "259200000", "345600000"),
    WrongEngine(
        "custom",
        "months of different years are one",
        BUCKETS,
        "toRelativeMonthNum(toDate32(toInt32(wall_ms / 86400000)))",
        "24240 + toMonth(toDate32(toInt32(wall_ms / 86400000)))",
    ),
    # Top and others
    WrongEngine("custom", "one group too many", TOP, "limit=top - 1", "limit=top"),
    WrongEngine(
        "custom",
        "top is chosen from a page",
        TOP,
        "        offset=0,\n",
        "        offset=plan.offset,\n",
    ),
    WrongEngine("custom", "top is chosen after having", TOP, "        having=(),\n", ""),
    WrongEngine(
        "custom",
        "top is chosen by the default order",
        TOP,
        "tuple(key for key in plan.order_by if key.output_name != DATE_OUTPUT_NAME)",
        "()",
    ),
    WrongEngine(
        "custom",
        "the group without a value is never a top one",
        TOP,
        'parts += [f"isNull({column})", f"ifNull({column}, {_WHEN_NULL[kind]})"]',
        "parts.append(column)",
    ),
    WrongEngine(
        "custom",
        "null and the number 0 are one top group",
        TOP,
        'parts += [f"isNull({column})", f"ifNull({column}, {_WHEN_NULL[kind]})"]',
        'parts.append(f"ifNull({column}, {_WHEN_NULL[kind]})")',
    ),
    WrongEngine(
        "custom",
        "the limit holds for others",
        TOP,
        'f"WHERE NOT {IS_TOP} OR (position > {first} AND position <= {last})"',
        'f"WHERE position > {first} AND position <= {last}"',
    ),
    WrongEngine(
        "custom",
        "having holds for others",
        COMPILE,
        'conditions = [f"(NOT {IS_TOP} OR {condition})" for condition in conditions]',
        "pass",
    ),
    WrongEngine(
        "custom",
        "totals are those of the top groups",
        COMPILE,
        "return plan.others or plan.totals",
        "return plan.others",
    ),
    WrongEngine(
        "custom",
        "others come as the store returns them",
        RESULT,
        "key=itemgetter(0))",
        "key=lambda _: 0)",
    ),
    WrongEngine(
        "custom",
        "others that only the compared range has are shown",
        RESULT,
        "    if not any(plan.compare is None or row[-2] for row in rows):\n",
        "    if not rows:\n",
    ),
    # Compare
    WrongEngine(
        "custom",
        "the period before overlaps by a day",
        COMPARE,
        "(last - first).days + 1)",
        "(last - first).days)",
    ),
    WrongEngine(
        "custom",
        "29 February becomes the 27th",
        COMPARE,
        "day=28 if is_leap_day",
        "day=27 if is_leap_day",
    ),
    WrongEngine(
        "custom",
        "groups of the compared range alone are rows",
        COMPILE,
        'return [f"{columns[-len(ROW_COUNTS)]} > 0", *conditions]',
        "return conditions",
    ),
    WrongEngine(
        "custom",
        "a missing row is compared with zero",
        RESULT,
        "is_present else [*row[:-width], *[None] * width]",
        "is_present else [*row[:-width], *[0] * width]",
    ),
    WrongEngine(
        "custom",
        "buckets are compared by their date",
        COMPILE,
        "if({source.current}, 0, {shift}))",
        "if({source.current}, 0, {shift} * 0))",
    ),
    WrongEngine(
        "custom",
        "having holds for what rows are compared with",
        COMPILE,
        "for planned in plan.having\n    ]\n\n\ndef _having_conditions",
        "for planned in plan.having\n    ] + "
        "[f'{columns[-1]} > 0' for _ in plan.having if plan.compare]\n\n\ndef _having_conditions",
    ),
    WrongEngine(
        "custom",
        "the filled compared range has every group of the result",
        FILL,
        "[row for row in rows if row[-1]])",
        "rows)",
    ),
    WrongEngine(
        "custom",
        "the filled range has groups of the compared one",
        FILL,
        "[row for row in rows if row[-2]]",
        "rows",
    ),
    WrongEngine(
        "custom",
        "the clock of the range alone holds for both",
        BUCKETS,
        "replace(days, offsets=_joint_offsets(days, compared))",
        "days",
    ),
    # Totals
    WrongEngine(
        "custom",
        "totals have no comparison",
        RESULT,
        "totals[PREVIOUS_OUTPUT_NAME] = dict(zip(names, values[len(names) :], strict=True))",
        "totals[PREVIOUS_OUTPUT_NAME] = dict(zip(names, values, strict=False))",
    ),
    WrongEngine(
        "custom",
        "the totals are those of the first row",
        RESULT,
        "row = selected.rows[0] if is_row_of_totals(plan) else selected.totals",
        "row = selected.rows[0] if selected.rows else selected.totals",
    ),
    # The last days
    WrongEngine(
        "days", "one day too many", DATES, "timedelta(days=period - 1)", "timedelta(days=period)"
    ),
    WrongEngine(
        "days",
        "today is that of UTC",
        DATES,
        "utc_datetime(now_ms).astimezone(zone)",
        "utc_datetime(now_ms)",
    ),
    WrongEngine(
        "days",
        "the dates win over the last days",
        DATES,
        "    if last_days is None:\n",
        "    if last_days is None or start is not None:\n",
    ),
    # Funnels
    WrongEngine(
        "paths",
        "the window is open at its end",
        FUNNEL,
        "start + {window} >= hit",
        "start + {window} > bitOr(hit, 65535)",
    ),
    WrongEngine(
        "paths",
        "one event can be two steps",
        FUNNEL,
        "arrayShiftRight(arrayFill(start -> start != 0, reached.1), 1, toUInt64(0))",
        "arrayFill(start -> start != 0, reached.1)",
    ),
    WrongEngine(
        "paths",
        "only the event right before begins an attempt",
        FUNNEL,
        "arrayFill(start -> start != 0, reached.1)",
        "reached.1",
    ),
    WrongEngine(
        "paths",
        "of two steps one event can be both",
        FUNNEL,
        "arrayShiftRight(arrayFill(start -> start != 0, starts_of_first), 1, toUInt64(0))",
        "arrayFill(start -> start != 0, starts_of_first)",
    ),
    WrongEngine(
        "paths",
        "who reached the first step alone began with any event",
        FUNNEL,
        "if(empty(completions), {_FIRST_START}, {start})",
        "if(empty(completions), arrayMin(gathered), {start})",
    ),
    WrongEngine(
        "paths",
        "a later step may come before",
        FUNNEL,
        "bitTest(hit, step) AND position > positions[-1]",
        "bitTest(hit, step)",
    ),
    WrongEngine(
        "paths",
        "the first attempt counts, however far it got",
        FUNNEL,
        "bitTest(hit, 0) AND bitOr(hit, 65535) + {window} >= completions[-1]",
        "bitTest(hit, 0)",
    ),
    WrongEngine(
        "paths",
        "of simultaneous first events any gives the group",
        FUNNEL,
        'position -> {arrival_of("ids[position]")},\n',
        "position -> ids[position],\n",
    ),
    WrongEngine(
        "paths",
        "the median is an element",
        FUNNEL,
        "quantileExactInclusiveForEach(0.5)",
        "quantileExactForEach(0.5)",
    ),
    WrongEngine(
        "paths",
        "the rate is of the step before",
        FUNNEL_SERVICE,
        "count / counts[0] if counts[0] else None",
        "count / counts[max(0, number - 2)] if counts[max(0, number - 2)] else None",
    ),
    WrongEngine(
        "paths",
        "simultaneous events come in any order",
        PATHS,
        '{arrival_of("id")}), gathered, ids)',
        "id), gathered, ids)",
    ),
    WrongEngine(
        "paths",
        "events without an id are somebody's",
        PATHS,
        'f"{group_key} != {missing}"',
        '"true"',
    ),
    WrongEngine(
        "paths",
        "a step on bots shows them to all steps",
        PATHS,
        "*(() if sees_bots else (NOT_A_BOT,))",
        "*()",
    ),
    # Retention
    WrongEngine(
        "paths",
        "the first event is a return",
        RETENTION,
        "arraySlice(hits, first_position + 1)",
        "arraySlice(hits, first_position)",
    ),
    WrongEngine(
        "paths",
        "a return at once counts, whichever arrived first",
        RETENTION,
        "plan.first != plan.returning",
        "False",
    ),
    WrongEngine(
        "paths",
        "cohorts begin after the range",
        RETENTION,
        'f"{bucket_expr(Granularity.DAILY)} <= {last_day}"',
        'f"{last_day} > 0"',
    ),
    WrongEngine(
        "paths",
        "returns are counted, not those who return",
        RETENTION,
        "has(returned, period)",
        "toUInt8(countEqual(returned, period) + 0)",
    ),
    WrongEngine(
        "paths",
        "returns of one bucket count twice",
        RETENTION,
        " - cohort,\n",
        " - cohort + 1,\n",
    ),
    WrongEngine(
        "paths",
        "periods that have not begun are 0",
        RETENTION_SERVICE,
        "count if cohort + period <= plan.current_bucket else None",
        "count",
    ),
    WrongEngine(
        "paths",
        "the last period is not read",
        RETENTION_CHECK,
        "granularity) + periods - 1",
        "granularity) + periods - 2",
    ),
    # Values
    WrongEngine(
        "values", "the case counts", VALUES, '(f"(?i){_escape(search)}",)', "(_escape(search),)"
    ),
    WrongEngine("values", "a search is a pattern", VALUES, "{_escape(search)}", "{search}"),
    WrongEngine(
        "values", "missing values are listed", VALUES, "(is_set, *contains)", "(*contains,)"
    ),
    WrongEngine(
        "values",
        "the limit is one less",
        VALUES,
        'return min(int(value), QUERY_LIMITS["maxValues"])',
        'return min(int(value), QUERY_LIMITS["maxValues"] - 1)',
    ),
    WrongEngine("values", "always truncated", VALUES_SERVICE, "> plan.limit,", ">= plan.limit,"),
    # Standard queries
    WrongEngine(
        "standard",
        "bounces are all sessions",
        DEFINITIONS,
        '_count("bounces", Filter("is_bounce", Operator.EQ.value, value=True))',
        '_count("bounces")',
    ),
    WrongEngine(
        "standard",
        "views are all events",
        DEFINITIONS,
        '"events", ("path",), [_count("views"), _VISITORS], _PAGE_VIEW, _is_set("path")',
        '"events", ("path",), [_count("views"), _VISITORS], _is_set("path")',
    ),
    WrongEngine(
        "standard",
        "campaigns need all three texts",
        DEFINITIONS,
        "Filter(any_of=are_set)",
        "Filter(all_of=are_set)",
    ),
    WrongEngine(
        "standard",
        "rows of one type count for another",
        STANDARD,
        "for key in own_keys if conditions else ():",
        "for key in ():",
    ),
    WrongEngine(
        "standard",
        "the group without a text is listed",
        STANDARD,
        "has_text = [f\"c{key} != ''\" for own_keys in keys for key in own_keys]",
        'has_text = ["true"]',
    ),
    WrongEngine(
        "standard",
        "types are ordered by the first type's select",
        STANDARD,
        "[{_NUMBER.name} + 1] DESC",
        "[1] DESC",
    ),
    WrongEngine(
        "standard",
        "the limit holds for all types",
        STANDARD,
        'f"LIMIT {limit} BY {_NUMBER.name}"',
        'f"LIMIT {limit}"',
    ),
    WrongEngine(
        "standard",
        "filters of the request are those of a type",
        STANDARD,
        "filters=first.plan.filters[len(first.own_filters) :]",
        "filters=first.plan.filters",
    ),
    WrongEngine(
        "standard",
        "the bounce rate is of visitors",
        STANDARD_SERVICE,
        'sessions = columns["sessions"]',
        'sessions = columns["visitors"]',
    ),
    WrongEngine(
        "standard",
        "online counts the last ten minutes",
        DEFINITIONS,
        "ONLINE_MS: Final = 300_000",
        "ONLINE_MS: Final = 600_000",
    ),
    WrongEngine(
        "standard",
        "online counts what is to come",
        STANDARD_CHECK,
        "PlannedFilter(time, Operator.LTE, (now_ms,)),\n",
        "",
    ),
    # Saved queries
    WrongEngine(
        "saved",
        "the version of the rows never changes",
        SAVED,
        "version = await self._versions.version_of(saved.website_id, ranges_of(plan))",
        'version = "1"',
    ),
    WrongEngine(
        "saved",
        "a known tag is answered again",
        SAVED,
        "result = None if is_known(tag) else await self._queries.run_plan(plan)",
        "result = await self._queries.run_plan(plan)",
    ),
    WrongEngine(
        "saved", "formats share a tag", TAG, "return (media_format, hashlib", 'return ("", hashlib'
    ),
    WrongEngine(
        "saved",
        "queries share a tag",
        TAG,
        "hashlib.sha256(body).digest()",
        'hashlib.sha256(b"").digest()',
    ),
    WrongEngine(
        "saved",
        "midnight changes no tag",
        TAG,
        ", days.first_day, days.last_day)",
        ", 0, 0)",
    ),
    WrongEngine(
        "saved",
        "the compared range changes no tag",
        TAG,
        "(plan.range,) if plan.compare is None else (plan.range, plan.compare)",
        "(plan.range,)",
    ),
    WrongEngine(
        "saved",
        "sessions are made of events of the range",
        TAG,
        "    if plan.table.is_derived:\n",
        "    if False:\n",
    ),
    WrongEngine(
        "saved", "a cutoff changes no tag", TAG, "    return plan.cutoff_ms\n", "    return None\n"
    ),
    WrongEngine(
        "saved",
        "the last millisecond is outside",
        WATCHED,
        "rows.start_ms <= time_ms < rows.end_ms",
        "rows.start_ms < time_ms < rows.end_ms",
    ),
    WrongEngine(
        "saved", "tables are one", WATCHED, "if rows.table != self.times.table:", "if False:"
    ),
    WrongEngine(
        "saved",
        "a change has no beginning",
        WATCHED,
        "            for change in self._in_progress:\n",
        "            for change in ():\n",
    ),
    WrongEngine(
        "saved",
        "a token of another query",
        SAVED,
        "if found.name != name or website_id",
        "if website_id",
    ),
)
