"""A port whose connections lead to a server, for tests of what is between the two."""

import contextlib
import socket
import threading


class Forwarder:
    """Forwards each new connection to the port that it leads to then; earlier ones stay."""

    def __init__(self, leads_to: int) -> None:
        self.leads_to = leads_to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Accept no connections any more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def pass_on(self, source: socket.socket, target: socket.socket, *, is_response: bool) -> None:
        """Pass on what comes until the source ends, or `OSError`. For tests that change it."""
        del is_response
        while chunk := source.recv(65_536):
            target.sendall(chunk)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.leads_to))
            for ends in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._run, args=ends, daemon=True).start()

    def _run(self, source: socket.socket, target: socket.socket, is_response: bool) -> None:
        with contextlib.suppress(OSError):
            self.pass_on(source, target, is_response=is_response)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
