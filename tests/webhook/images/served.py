"""``waddle provider images`` as a process, beside a registry with images that are signed, or not."""

import contextlib
import datetime as dt
import http.client
import json
import re
import ssl
import subprocess
import sys

from tests.oci_registry import serving
from tests.patience import PATIENCE_SECONDS
from tests.provider_process import make_authority
from tests.webhook.images.signing import MANIFEST, Layout, new_key, public_pem, simply_signed
from webhook.certificates.pairs import self_signed

POLICY = """\
apiVersion: waddle.dev/v1alpha1
kind: VerificationPolicy
metadata: {name: ours}
spec:
  images: ["%s/*"]
  authorities:
    - {name: release, key: {file: release.pub}, transparencyLog: Ignored}
"""


class Images:
    """A registry with signed images, and the process that is asked about them."""

    def __init__(self, folder, registry, *more, answer_within="60", clients=None, files=True):
        """``clients`` are authorities of who may ask, and without ``files`` no policy lies in files."""
        self.folder, self.registry = folder, registry
        self.key = new_key()
        self.layout = Layout(folder / "images")
        (folder / "policies").mkdir()
        (folder / "policies" / "release.pub").write_bytes(public_pem(self.key))
        (folder / "policies" / "policy.yaml").write_text(POLICY % registry.host)
        self.server = make_authority()
        self.client = self_signed(["waddle"], dt.datetime.now(tz=dt.UTC))
        certificates = folder / "certs"
        certificates.mkdir()
        chain, _, key = self.server.chain.partition(b"-----BEGIN PRIVATE KEY")
        (certificates / "tls.crt").write_bytes(chain)
        (certificates / "tls.key").write_bytes(b"-----BEGIN PRIVATE KEY" + key)
        (certificates / "ca.crt").write_bytes(clients or self.client.certificate)
        (folder / "client.pem").write_bytes(self.client.certificate + self.client.key)
        self.command = [
            *(sys.executable, "-m", "webhook", "provider", "images"),
            *(("-f", folder / "policies") if files else ()),
            *("--cert-dir", certificates, "--answer-within", answer_within),
            *("--host", "127.0.0.1", "--registry-insecure", registry.host, *more),
        ]
        self.port = 0
        self.start()

    def start(self):
        """Run the process, also again after it has ended, on the same port; it answers then."""
        self.process = subprocess.Popen(
            [*self.command, "--port", str(self.port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if ready := re.search(r"https://127\.0\.0\.1:(\d+)/", line):
                self.port = int(ready[1])
                probed = re.search(r"http://127\.0\.0\.1:(\d+)/metrics", line)
                self.metrics_port = probed and int(probed[1])
                return
        self.end()
        raise AssertionError("".join(lines))

    def end(self):
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_SECONDS)

    def get(self, path):
        """Returns the answer of the port for probes."""
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=PATIENCE_SECONDS)
        ) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def push(self, tag, *, signed=True):
        """An image of the registry, and its reference."""
        digest = self.layout.image(tag)
        if signed:
            self.layout.sign_simply(digest, [simply_signed(self.key, digest)])
        self.publish()
        return f"{self.registry.host}/app:{tag}", digest

    def publish(self):
        """Have the registry hold what the folder has."""
        for blob in (self.layout.directory / "blobs" / "sha256").iterdir():
            self.registry.blobs[f"sha256:{blob.name}"] = blob.read_bytes()
        for entry in self.layout.entries:
            name = entry.get("annotations", {}).get("org.opencontainers.image.ref.name", "")
            self.registry.put("app", name, self.registry.blobs[entry["digest"]], MANIFEST)

    def connect(self, *, certificate=True, newest=ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context(cadata=self.server.certificate.decode())
        context.maximum_version = newest
        if certificate:
            context.load_cert_chain(self.folder / "client.pem")
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=context, timeout=PATIENCE_SECONDS
        )

    def ask(self, *keys, path="/", body=None):
        with contextlib.closing(self.connect()) as connection:
            request = {"kind": "ProviderRequest", "request": {"keys": keys}}
            connection.request("POST", path, body or json.dumps(request))
            answer = connection.getresponse()
            document = json.loads(answer.read())
        assert document["kind"] == "ProviderResponse"
        return answer.status, document["response"]


@contextlib.contextmanager
def running(folder, *more, **options):
    with serving() as registry:
        made = Images(folder, registry, *more, **options)
        try:
            yield made
        finally:
            made.end()
