"""The keyed hash of an identifier."""

import hashlib

import pytest

from headrace.erasure.subjects import hash_prefixes, subject_of
from headrace.model.erasure import Selector, SelectorKind

KEY = bytes(range(32))
ANN = Selector(SelectorKind.ANONYMOUS_ID, "änn")


def test_a_subject_depends_on_key_website_kind_and_value() -> None:
    subjects = {
        subject_of(KEY, "web_1", ANN).digest,
        subject_of(KEY[1:], "web_1", ANN).digest,
        subject_of(KEY, "web_2", ANN).digest,
        subject_of(KEY, "web_1", Selector(SelectorKind.SESSION_ID, "änn")).digest,
        subject_of(KEY, "web_1", Selector(SelectorKind.ANONYMOUS_ID, "ann")).digest,
        subject_of(KEY, "web_1", Selector(SelectorKind.PROPERTY, "1", "k")).digest,
        subject_of(KEY, "web_1", Selector(SelectorKind.PROPERTY, 1, "k")).digest,
    }
    assert len(subjects) == 7


@pytest.mark.parametrize(
    ("number", "equal"), [(5, 5.0), (0, -0.0), (-12, -1.2e1), (10**20, 1e20), (0.1, 1e-1)]
)
def test_equal_numbers_are_one_subject(number: float, equal: float) -> None:
    subjects = {
        subject_of(KEY, "web_1", Selector(SelectorKind.PROPERTY, value, "k")).digest
        for value in (number, equal)
    }
    assert len(subjects) == 1


def test_other_values_are_other_subjects() -> None:
    values = (1, 1.5, True, "1", "1.0", 2**53, 2**53 + 1)
    subjects = {
        subject_of(KEY, "web_1", Selector(SelectorKind.PROPERTY, value, "k")).digest
        for value in values
    }
    assert len(subjects) == len(values)


def test_a_store_computes_the_same_hash_from_the_prefixes() -> None:
    prefixes = hash_prefixes(KEY, "web_1", ANN.kind)
    inner = hashlib.sha256(prefixes.inner + "änn".encode()).digest()
    digest = hashlib.sha256(prefixes.outer + inner).hexdigest()
    assert digest == subject_of(KEY, "web_1", ANN).digest
