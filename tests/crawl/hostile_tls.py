"""A certificate nobody knows, and the smallest server that speaks HTTP/2, for tests of TLS."""

import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4


def make_certificate(folder: Path, *names: str) -> tuple[Path, Path]:
    """A certificate for these names that signed itself, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    alternatives = ",".join(f"IP:{name}" if name[0].isdigit() else f"DNS:{name}" for name in names)
    command = [
        "openssl",
        "req",
        "-x509",
        "-nodes",
        "-days",
        "2",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
    ]
    command += ["-subj", f"/CN={names[0]}", "-addext", f"subjectAltName={alternatives}"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


class Http2Server:
    """Answers every HTTP/2 request with status 200 and the body `h2`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        context.set_alpn_protocols(["h2"])
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(30)

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._converse, args=(plain,), daemon=True).start()

    def _converse(self, plain: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(plain, server_side=True) as connection:
            _speak(connection)


def _speak(connection: ssl.SSLSocket) -> None:
    if _exactly(connection, len(_PREFACE)) != _PREFACE:
        return
    connection.sendall(_frame(_SETTINGS, 0, 0))
    while head := _exactly(connection, 9):
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9], "big")
        _exactly(connection, int.from_bytes(head[:3], "big"))
        if kind == _SETTINGS and not flags & _ACK:
            connection.sendall(_frame(_SETTINGS, _ACK, 0))
        elif kind == _HEADERS:
            # 0x88 is `:status: 200` in the static table of HPACK.
            connection.sendall(_frame(_HEADERS, _END_HEADERS, stream, b"\x88"))
            connection.sendall(_frame(_DATA, _END_STREAM, stream, b"h2"))


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _exactly(connection: ssl.SSLSocket, count: int) -> bytes:
    received = b""
    while len(received) < count and (more := connection.recv(count - len(received))):
        received += more
    return received if len(received) == count else b""
