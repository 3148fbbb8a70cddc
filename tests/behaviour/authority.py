"""A certificate authority whose clients a server may ask to show themselves."""

import datetime as dt
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.behaviour.serving import unverified


class Authority:
    """A certificate authority for clients."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "clients")])
        self.pem = self._sign(self.name, self.key.public_key(), authority=True)

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, authority: bool
    ) -> bytes:
        now = dt.datetime.now(tz=dt.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM)

    def client(self, name: str, folder: Path, *more: str) -> ssl.SSLContext:
        """A client's context with a certificate of this common name, and more of them."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = (name, *more)
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, one) for one in names])
        pem = self._sign(subject, key.public_key(), authority=False)
        path = folder / f"{'-'.join(names)}.pem"
        path.write_bytes(
            pem
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = unverified()
        context.load_cert_chain(path)
        return context
