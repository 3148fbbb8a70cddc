"""The alerts of the manifests."""

from typing import Any

import yaml

from tests.manifests import MANIFESTS

SUFFIXES = ("_total", "_bucket", "_sum", "_count")


def alerts() -> list[Any]:
    (rule,) = yaml.safe_load_all((MANIFESTS / "components/alerts/prometheus-rule.yaml").read_text())
    found = rule["spec"]["groups"][0]["rules"]
    assert len({alert["alert"] for alert in found}) == len(found)
    return list(found)
