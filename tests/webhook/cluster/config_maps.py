"""ConfigMaps in pages."""

from tests.patience import PATIENCE_SECONDS
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.cluster.reflector import Settings

CONFIG_MAP = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)
PAGES = Settings(
    watch_list=False,
    inactivity_seconds=PATIENCE_SECONDS,
    backoff_initial_seconds=0.01,
    backoff_max_seconds=0.02,
    missing_seconds=0.02,
)
