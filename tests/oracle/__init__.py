"""A reference evaluator of queries: what the contract says, in plain Python over lists of dicts.

It shares no code with the product. `evaluate_query` gives the exact rows of a body, or raises
`QueryRejected`.
"""

from tests.oracle.check import QueryRejected, check
from tests.oracle.evaluate import Answer, evaluated
from tests.oracle.rows import Stored

__all__ = ["Answer", "QueryRejected", "Stored", "evaluate_query"]


def evaluate_query(body: object, stored: Stored) -> Answer:
    """Answer a query body (decoded JSON) over what one website has stored."""
    return evaluated(check(body), stored)
