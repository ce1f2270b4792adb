"""A reference evaluator of queries: the contract in plain Python over lists of dicts.

It shares no code with the product. `evaluate_query` returns the exact rows for a body, or raises
`QueryRejected`.
"""

from tests.oracle.check import QueryRejected, check
from tests.oracle.evaluate import Answer, evaluated
from tests.oracle.rows import Stored

__all__ = ["Answer", "QueryRejected", "Stored", "evaluate_query"]


def evaluate_query(body: object, stored: Stored) -> Answer:
    """Evaluate a query body (decoded JSON) over the stored rows of one website."""
    return evaluated(check(body), stored)
