"""Prepares objects with locks, threads and files for a fork of the process.

Preforking servers and multiprocessing fork at any time, also while other threads hold locks.
"""

from __future__ import annotations

import os
import threading
import weakref


class ForkAware:
    """An object that can say what a fork must wait for, and what a child begins with."""

    __slots__ = ("__weakref__",)

    def before_fork(self) -> None:
        """Bring the object to a state that can be copied. May block for a moment."""

    def after_fork_in_parent(self) -> None:
        """Go on."""

    def after_fork_in_child(self) -> None:
        """Drop what belongs to the parent. No other thread runs."""


_aware: weakref.WeakSet[ForkAware] = weakref.WeakSet()
_forking: list[ForkAware] = []
_lock = threading.RLock()  # held during a fork: another thread that forks waits for its turn


def prepare_for_forks(one: ForkAware) -> None:
    """Call the methods of an object at every fork, as long as it exists."""
    with _lock:
        _aware.add(one)


def _before() -> None:
    _lock.acquire()
    _forking[:] = list(_aware)
    for one in _forking:
        one.before_fork()


def _after_in_parent() -> None:
    for one in _forking:
        one.after_fork_in_parent()
    _forking.clear()
    _lock.release()


def _after_in_child() -> None:
    for one in list(_aware):
        one.after_fork_in_child()
    _forking.clear()
    _lock.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
