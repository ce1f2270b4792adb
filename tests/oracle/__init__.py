"""A reference evaluator of queries: what the contract says, in plain Python over lists of dicts.

It shares no code with the product. `answer` gives the exact rows of a body, or raises `Refused`.
"""

from tests.oracle.check import Refused, checked
from tests.oracle.evaluate import Answer, evaluated
from tests.oracle.rows import Stored

__all__ = ["Answer", "Refused", "Stored", "answer"]


def answer(body: object, stored: Stored) -> Answer:
    """Answer a query body (decoded JSON) over what one website has stored."""
    return evaluated(checked(body), stored)
