"""Which rows of a website may be shown to anyone: queries and exports read no others."""

from msgspec import Struct

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.tenancy import WebsiteId
from headrace.query.sql.builder import Parameters
from headrace.query.sql.sources.rollup import RollupExpression


class VisibleRows(Struct, frozen=True):
    """The visible rows of one website, as placeholders of bound values.

    `cutoff` is the beginning of a UTC day, in epoch milliseconds: rows before it are expired. None
    is without a cutoff, which is part of the statement's shape.
    """

    website: str
    cutoff: str | None

    def stored_rows(self, time: str = "time") -> list[str]:
        """Return the conditions for the rows of a stored table."""
        conditions = [f"website_id = {self.website}"]
        if self.cutoff is not None:
            conditions.append(f"{time} >= fromUnixTimestamp64Milli({self.cutoff}, 'UTC')")
        return conditions

    def rollups(self) -> list[RollupExpression]:
        """Return the conditions for daily rollups, which are of UTC days as the cutoff is."""
        conditions = [RollupExpression("website_id = {website}", {"website": self.website})]
        if self.cutoff is not None:
            day = f"intDiv({self.cutoff}, {MILLISECONDS_PER_DAY})"
            conditions.append(RollupExpression("{day} >= {cutoff_day}", {"cutoff_day": day}))
        return conditions


def bind_visible_rows(
    website_id: WebsiteId, cutoff_ms: int | None, parameters: Parameters
) -> VisibleRows:
    """Bind the website, and the cutoff of the table that is read if there is one."""
    website = parameters.bind(website_id, "String")
    return VisibleRows(website, None if cutoff_ms is None else parameters.bind(cutoff_ms, "Int64"))
