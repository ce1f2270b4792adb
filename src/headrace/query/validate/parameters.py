"""Reads the parameters of a query string, each of which has a meaning."""

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json


def read_parameters(query_string: bytes, known: Sequence[str]) -> Mapping[str, str]:
    """Return the parameters; of one that comes twice the first that is not empty.

    An unknown one is never ignored: misspelled, it would leave out a bound. Raises `InvalidQuery`:
    `Invalid parameter`.
    """
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query_string.decode("latin-1"), errors="replace"):
        if name not in known:
            detail = f" {quote_json(name)}{did_you_mean_one_of(name, known)}"
            raise InvalidQuery(QueryErrorCode.INVALID_PARAMETER, detail)
        parameters.setdefault(name, value)
    return parameters
