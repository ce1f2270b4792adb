"""What a wrong engine is: one mistake that somebody could make, as a change of one text."""

from typing import Final, NamedTuple

QUERY: Final = "src/headrace/query"
VALIDATE: Final = f"{QUERY}/validate"


class WrongEngine(NamedTuple):
    """`old` occurs once in the file, and is replaced by `new`. `area` decides which tests run."""

    area: str
    mistake: str
    file: str
    old: str
    new: str
