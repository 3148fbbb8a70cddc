"""TLS as an API server's client has it: verified, and without Nagle's delay."""

import socket
import ssl
import tempfile
from typing import Any


class PromptContext(ssl.SSLContext):
    """A context whose connections send at once, as Go's do.

    A body of more than one TLS record (16 KiB) is several writes, and Nagle's algorithm keeps the
    last of them until the server acknowledges the first: 40 ms that are nobody's work.
    """

    def wrap_socket(self, sock: socket.socket, *args: Any, **keywords: Any) -> ssl.SSLSocket:
        """Wrap a connected socket."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return super().wrap_socket(sock, *args, **keywords)


def client_context(
    authority: str = "", pair: bytes = b"", *, verified: bool = True
) -> ssl.SSLContext:
    """A client's context: its bundle (PEM, else the system's), its certificate with key (PEM)."""
    context = PromptContext(ssl.PROTOCOL_TLS_CLIENT)
    if not verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority:
        context.load_verify_locations(cadata=authority)
    else:
        context.load_default_certs()
    if pair:
        with tempfile.NamedTemporaryFile() as file:  # OpenSSL reads a key from files only
            file.write(pair)
            file.flush()
            context.load_cert_chain(file.name)
    return context
