"""Check the body of a funnel and make its plan; the first error rejects it."""

from collections.abc import Sequence

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.model.catalog import EVENTS, QUERY_LIMITS
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.model.tenancy import WebsiteId
from headrace.model.wire_analyses import FunnelRequest, FunnelStep
from headrace.query.funnel.plan import FunnelPlan, PlannedStep
from headrace.query.validate.columns import find_column
from headrace.query.validate.conditions.filters import check_filters, resolve_datetimes
from headrace.query.validate.dates import check_period, check_timezone, resolve_period
from headrace.query.validate.day_range import range_of_days
from headrace.query.validate.decode_body import BodyType, check_filter_keys, decode_body
from headrace.query.validate.identity import check_identity
from headrace.query.validate.lengths import parse_whole_number

FUNNEL = BodyType(FunnelRequest, {"steps": FunnelStep, "steps.filters": wire.Filter})


def decode_funnel(body: bytes) -> FunnelRequest:
    """Decode a body. Raises `InvalidQuery`: `Invalid request body` with the error and its path."""
    request = decode_body(body, FUNNEL)
    for index, step in enumerate(request.steps):
        check_filter_keys(step.filters, f"steps[{index}].filters")
    return request


def check_funnel(
    request: FunnelRequest,
    website_id: WebsiteId,
    cutoffs: Cutoffs = NO_CUTOFFS,
    *,
    now_ms: int,
) -> FunnelPlan:
    """Return the plan of a funnel over the rows that the cutoffs leave.

    `now_ms` is the time of the request, which decides what the last days are.

    Raises `InvalidQuery` for the first error.
    """
    _check_number_of_steps(request.steps)
    filters = [
        check_filters(EVENTS, step.filters, f"steps[{index}].filters")
        for index, step in enumerate(request.steps)
    ]
    window_s = _check_window(request.window)
    by = check_identity(request.by)
    group_by = None if request.group_by is None else find_column(EVENTS, request.group_by)
    period = check_period(request.start_date, request.end_date, request.last_days)
    zone = check_timezone(request.timezone)
    return FunnelPlan(
        website_id=website_id,
        steps=tuple(
            PlannedStep(step.name, resolve_datetimes(checked, zone))
            for step, checked in zip(request.steps, filters, strict=True)
        ),
        window_ms=window_s * 1000,
        by=by,
        group_by=group_by,
        range=range_of_days(*resolve_period(period, zone, now_ms), zone),
        cutoff_ms=cutoffs.of_table(EVENTS),
    )


def _check_number_of_steps(steps: Sequence[FunnelStep]) -> None:
    minimum, maximum = QUERY_LIMITS["minFunnelSteps"], QUERY_LIMITS["maxFunnelSteps"]
    if not minimum <= len(steps) <= maximum:
        detail = f": {len(steps)} given, a funnel has {minimum} to {maximum}"
        raise InvalidQuery(QueryErrorCode.INVALID_STEPS, detail)


def _check_window(value: object) -> int:
    """Return the seconds from the first step to the last."""
    if value is None:
        return QUERY_LIMITS["defaultFunnelWindow"]
    window, maximum = parse_whole_number(value), QUERY_LIMITS["maxFunnelWindow"]
    if window is None or not 1 <= window <= maximum:
        detail = f": must be a whole number of seconds from 1 to {maximum}"
        raise InvalidQuery(QueryErrorCode.INVALID_WINDOW, detail)
    return window
