"""TLS in front of real servers of tests, and a certificate that no system knows."""

import contextlib
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest


class EncryptedPort:
    """Terminates TLS with a certificate for localhost and forwards the bytes to another port."""

    def __init__(self, target: int, certificate: Path, key: Path) -> None:
        self._target = target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """End all connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                raw, _ = self._listener.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(raw,)))
                self._threads[-1].start()

    def _serve(self, raw: socket.socket) -> None:
        with raw, contextlib.suppress(OSError):
            client = self._context.wrap_socket(raw, server_side=True)
            with client, socket.create_connection(("127.0.0.1", self._target)) as server:
                listening = threading.Thread(target=_pass_on, args=(server, client))
                listening.start()
                _pass_on(client, server)
                listening.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65_536):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    directory = tmp_path_factory.mktemp("certificate")
    made = (directory / "ca.pem", directory / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
            *("-out", str(made[0]), "-keyout", str(made[1])),
        ],
        check=True,
        capture_output=True,
    )
    return made
