"""``waddle console``: web pages of the policies in force and their findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import clusters_options
from webhook.cli.policy_options import PROVIDERS, InputPath

_HELP = """Serve pages that show policies, what they find, and a place to try them.

Over files, on this machine:

\b
  waddle console --policies policies/
  waddle console --policies policies/ --manifests manifests/

Over a cluster, from a laptop or as a Deployment of its own:

\b
  waddle console --kubeconfig ~/.kube/config

Over several clusters, each a context of the kubeconfig:

\b
  waddle console --context staging --context production

Nothing is written and nothing is decided here: admissions are answered by `waddle serve`.
Every page is JSON, too, with ?format=json.
"""

_SECRET = InputPath(dir_okay=False, readable=True)
_PATH = click.Path(exists=True, path_type=Path)


@click.command("console", help=_HELP + exit_codes.paragraph("console"))
@click.option(
    "--policies",
    metavar="PATH",
    multiple=True,
    type=_PATH,
    help="A file or folder of templates and constraints. Repeatable.",
)
@click.option(
    "--manifests",
    metavar="PATH",
    multiple=True,
    type=_PATH,
    help="A file or folder of objects to review by the policies. Repeatable.",
)
@PROVIDERS
@click.option(
    "--kubernetes",
    is_flag=True,
    help="Follow a cluster: that of $KUBECONFIG, of the Pod, or of the user's kubeconfig.",
)
@clusters_options
@click.option(
    "--kyverno-policies",
    "kyverno",
    type=click.Choice(["off", "audit", "enforce"]),
    default="off",
    show_default=True,
    help=(
        "Whether to show the cluster's Kyverno policies in CEL. Give the value that the "
        "replicas have."
    ),
)
@click.option(
    "--decisions",
    metavar="PATH",
    type=_PATH,
    help="The decision log for the page of decisions: a file, or a sidecar's queue.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; empty for all, of IPv4 and IPv6.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8090,
    show_default=True,
    help="The port; 0 lets the system choose one.",
)
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="A host name, besides localhost, at which browsers may open the console. Repeatable.",
)
@click.option(
    "--oidc-issuer-url",
    metavar="URL",
    help="Require a sign-in at this OpenID provider. Users then see only what they may read.",
)
@click.option(
    "--oidc-client-id", metavar="ID", help="The client ID of this console at the provider."
)
@click.option(
    "--oidc-client-secret-file",
    metavar="FILE",
    type=_SECRET,
    help="The file with the client secret; none for a public client.",
)
@click.option(
    "--oidc-redirect-url",
    metavar="URL",
    help=(
        "The address to which the provider redirects, such as "
        "https://console.example.com/oidc/callback."
    ),
)
@click.option(
    "--oidc-ca-file",
    metavar="FILE",
    type=_SECRET,
    help="The file with the certificate authorities of the provider, instead of the system's.",
)
@click.option(
    "--oidc-scope",
    "oidc_scopes",
    metavar="SCOPE",
    multiple=True,
    default=("openid", "email", "profile", "groups"),
    show_default=True,
    help="A scope to request from the provider. Repeatable.",
)
@click.option(
    "--oidc-username-claim",
    metavar="CLAIM",
    default="sub",
    show_default=True,
    help="The claim with the user's name; give the API server's value.",
)
@click.option(
    "--oidc-username-prefix",
    metavar="TEXT",
    default="",
    help=(
        "The prefix of user names; - means none. The default is the issuer and #, or none if "
        "the claim is email."
    ),
)
@click.option(
    "--oidc-groups-claim",
    metavar="CLAIM",
    default="",
    help="The claim with the user's groups. Without it users have no groups.",
)
@click.option("--oidc-groups-prefix", metavar="TEXT", default="", help="The prefix of group names.")
@click.option(
    "--cookie-key-file",
    metavar="FILE",
    type=_SECRET,
    help=(
        "The file with the key that encrypts sessions, of 32 bytes or more. All replicas "
        "need the same key."
    ),
)
@click.option(
    "--session-minutes",
    type=click.IntRange(1, 7 * 24 * 60),
    default=60,
    show_default=True,
    help="The lifetime of a session. Then users sign in again.",
)
def command(**options: Any) -> int:
    """Serve until a signal."""
    # Imported here: --help and a mistyped option do not need it.
    from webhook.cli.console.run import run  # noqa: PLC0415

    return run(**options)
