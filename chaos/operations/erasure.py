"""An erasure in progress: a session is in no answer once the call has returned, and never again."""

import http.client
from collections.abc import Sequence

from chaos.load import session_of
from chaos.operations.operation import Attempts, OperationContext
from chaos.service import send_request


class SessionErasure:
    """Erases the events, vitals and errors of one sender of an earlier round."""

    def __init__(self, context: OperationContext) -> None:
        self._context = context
        self._ids: Sequence[str] = ()
        self._session = ""
        self._attempts = Attempts(
            self._erase, what="an erasure", timeout_s=context.service.recovery_timeout_s
        )

    def begin(self) -> bool:
        """Choose a session, and begin to erase it."""
        journal = self._context.traffic.journal
        sessions = sorted({session_of(event_id) for event_id in journal.acknowledged()})
        earlier = [
            session for session in sessions if not session.startswith(f"{self._context.number}-")
        ]
        if not earlier:
            return False
        self._session = self._context.random.choice(earlier)
        with self._context.traffic.paused():
            self._context.traffic.forget_repeats(
                lambda event_id: session_of(event_id) == self._session
            )
            self._ids = [
                event_id
                for event_id in journal.acknowledged()
                if session_of(event_id) == self._session
            ]
            journal.begin_erasing(self._ids)
        self._attempts.start()
        return True

    def finish(self) -> None:
        """Wait until the erasure is accepted: from then on no answer may have the session."""
        self._attempts.join()
        self._context.traffic.journal.finish_erasing(self._ids)

    def abandon(self) -> None:
        """End the attempts."""
        self._attempts.abandon()

    def _erase(self) -> bool:
        """Ask for the erasure, but not while senders are paused.

        A power cut is then tried with several images of the disk: what the service accepts on one
        of them is unknown on the next.
        """
        with self._context.traffic.permission_to_send() as is_permitted:
            return is_permitted and self._is_accepted()

    def _is_accepted(self) -> bool:
        account = self._context.traffic.account
        try:
            response = send_request(
                self._context.service.port,
                "POST",
                f"/v1/erasures?website_id={account.website}",
                body={"sessionId": self._session},
                headers={"Authorization": f"Bearer {account.key}"},
            )
        except (OSError, http.client.HTTPException):
            return False
        return response.status == 202
