"""Round after round on one data directory: load, a fault, recovery, the check of all history."""

import time
from collections.abc import Iterable
from random import Random

from chaos.bookkeeping import Books, Fate, Page, Rows, Wrong
from chaos.faults import FAULTS, Broken, Fault, Scene, choose_fault
from chaos.load import TABLES, Traffic, load
from chaos.place import Place
from chaos.questions import Account, Questions
from chaos.report import Report
from chaos.service import Service

_SHOWN_IDS = 20
_TOLD_EVERY = 10


class Rounds:
    """One run; `seed` decides on the faults and their moments."""

    def __init__(self, *, service: Service, place: Place, seed: int, only: str = "") -> None:
        self._service = service
        self._place = place
        self._only = only
        self._seed = seed
        self._random = Random(seed)
        self._books = Books()
        self._is_ending = False
        self.report = Report(seed=seed)
        if not place.can_be_full:
            self.report.skipped = [name for name, each in FAULTS.items() if each.needs_own_disk]

    def run(self, rounds: int) -> None:
        """Run the rounds. Raises `Broken` with what was found, or `NotBack`."""
        began_s = time.monotonic()
        self._begin()
        try:
            for number in range(1, rounds + 1):
                if self._is_ending:
                    break
                self._run_round(number)
                if number % _TOLD_EVERY == 0:
                    self._tell(time.monotonic() - began_s)
            for table in TABLES.values():
                self._check_pages(self._books.pages(table))
        finally:
            self.report.starts = self._service.starts
            self.report.duration_s = round(time.monotonic() - began_s, 1)
            self.report.note_traffic(self._traffic)

    def end_soon(self) -> None:
        """Let this round be the last one; everything is checked then as at the end of a run."""
        self._is_ending = True

    def _tell(self, passed_s: float) -> None:
        acknowledged = self._books.totals().get(Fate.ACKNOWLEDGED, 0)
        told = f"{self.report.rounds} rounds, {acknowledged} events acknowledged, {passed_s:.0f} s"
        print(told, flush=True)

    def _begin(self) -> None:
        """Start for the first time, with kills while the tables are made."""
        for _ in range(self._random.randint(0, 2)):
            self._service.launch()
            time.sleep(self._random.uniform(0.2, 1.5))
            self._service.kill_everything()
        self._service.launch()
        self._service.return_to_service()
        website = self._service.command("website", "create", "--name", "crash test")["id"]
        scopes = ("--scope", "track:events", "--scope", "read:data")
        key = self._service.command("key", "create", *scopes)["key"]
        account = Account(website, key)
        self._questions = Questions(self._service, account)
        self._traffic = Traffic(port=self._service.port, account=account, books=self._books)

    def _run_round(self, number: int) -> None:
        fault = self._fault()
        self.report.rounds = number
        self.report.faults[fault.name] += 1
        random = Random(f"{self._seed}-{number}")
        scene = Scene(self._service, self._questions, self._traffic, self._place, random)
        with load(self._traffic, f"{number}", f"{self._seed}-{number}"):
            time.sleep(random.uniform(0.05, 0.5))
            fault.strike(scene)
            over_s = time.monotonic()
            self._service.return_to_service()
            self.report.note_recovery(fault.name, time.monotonic() - over_s)
            time.sleep(0.1)
        self._check_round(number)

    def _fault(self) -> Fault:
        drawn = choose_fault(self._random, can_be_full=self._place.can_be_full)
        return FAULTS[self._only] if self._only else drawn

    def _check_round(self, number: int) -> None:
        """Check this round by ids, and the number of rows of all others."""
        if self._traffic.problems:
            raise Broken("; ".join(self._traffic.problems))
        for table in TABLES.values():
            counts = self._questions.counts(table)
            pages = {*self._books.pages(table), *(Page(table, path) for path in counts)}
            newest = {Page(table, f"/{number}"), Page(table, f"/{number - 1}")}
            odd = [
                page
                for page in pages
                if page in newest
                or not self._books.is_plausible(page, Rows(*counts.get(page.path, (0, 0))))
            ]
            self._check_pages(odd)

    def _check_pages(self, pages: Iterable[Page]) -> None:
        for page in pages:
            stored = self._questions.stored(page.table, page.path)
            wrong = self._books.compare(page, stored)
            if wrong:
                self._note(wrong)
                raise Broken(f"in {page.table} at {page.path}: {_in_words(wrong)}")

    def _note(self, wrong: Wrong) -> None:
        self.report.lost += len(wrong.lost)
        self.report.doubled += len(wrong.doubled)
        self.report.refused_but_stored += len(wrong.refused_but_stored)
        self.report.never_sent += len(wrong.never_sent)


def _in_words(wrong: Wrong) -> str:
    found = {name: ids for name, ids in wrong._asdict().items() if ids}
    return "; ".join(
        f"{len(ids)} {name.replace('_', ' ')}: {', '.join(ids[:_SHOWN_IDS])}"
        for name, ids in found.items()
    )
