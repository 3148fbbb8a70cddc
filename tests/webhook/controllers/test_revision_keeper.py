"""What a replica knows of revisions that are kept: by what it read and wrote, and by its watch."""

from tests.cluster import write_kubeconfig
from tests.webhook.controllers.test_policies import template
from webhook.api.pod_status import Pod
from webhook.api.revision import digest_of, read_revision, revision_object
from webhook.api.revision_outcome import Outcome
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.controllers.revision_keeper import RevisionKeeper
from webhook.log import open_log


def test_what_was_read_while_another_tried_does_not_undo_what_the_watch_told_since(tmp_path):
    """Who believed that one is still at it waited four minutes for a word that had been said."""
    credentials = load_credentials(write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1"))
    log = open_log(str(tmp_path / "log")).logger("revisions")
    pod = Pod("waddle-1", "waddle-system", "uid-1")
    keeper = RevisionKeeper(ClusterClient(credentials), pod, log, limit=2, tell=lambda _: None)
    document = template()
    document["metadata"] |= {"uid": "u", "generation": 1}

    def made(verdict):
        outcome = Outcome(verdict, "waddle-0", "uid-0", "1", "2026-01-01T00:00:00Z")
        return revision_object(document, digest_of(document), outcome)

    name = read_revision(made("trying")).name
    for verdict, known in (("trying", "trying"), ("ended", "ended"), ("trying", "ended")):
        keeper.take(made(verdict))
        assert keeper.named("u", name).outcome.verdict == known
