"""Keeps answers of selects for as long as nothing was stored that could change them."""

from collections import OrderedDict

from msgspec import Struct

from headrace.adapters.query_scheduler.key import Question
from headrace.adapters.query_scheduler.versions import Version

_LARGEST_SHARE = 8
"""An answer over an eighth of the room would push out too many others."""

_ENTRY_BYTES = 512
"""What an entry takes beside its texts, about."""


class _Kept(Struct, frozen=True):
    version: Version
    answer: bytes
    size: int


class AnswerCache:
    """Answers by question, one version of each; the least recently used ones go first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Question, _Kept] = OrderedDict()
        self.size = 0

    def get(self, question: Question, version: Version) -> bytes | None:
        """Return the answer over this version of the rows; one over another is forgotten."""
        kept = self._kept.get(question)
        if kept is None:
            return None
        if kept.version != version:
            self._forget(question)
            return None
        self._kept.move_to_end(question)
        return kept.answer

    def put(self, question: Question, version: Version, answer: bytes) -> None:
        """Keep an answer, unless it is too large."""
        self._forget(question)
        size = len(answer) + question.text_size() + _ENTRY_BYTES
        if size > self._max_bytes // _LARGEST_SHARE:
            return
        self._kept[question] = _Kept(version, answer, size)
        self.size += size
        while self.size > self._max_bytes:
            self._forget(next(iter(self._kept)))

    def _forget(self, question: Question) -> None:
        kept = self._kept.pop(question, None)
        if kept is not None:
            self.size -= kept.size
