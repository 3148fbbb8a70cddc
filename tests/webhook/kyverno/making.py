"""MutatingPolicies of Kyverno, a Pod, and a certificate, for tests."""

from typing import Any

Json = dict[str, Any]
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
LABEL = 'Object{metadata: Object.metadata{labels: {"team": "a"}}}'
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIB4DCCAUmgAwIBAgIJAQAAAAAAAAAHMA0GCSqGSIb3DQEBCwUAMA0xCzAJBgNV
BAMMAmNhMB4XDTI2MDEwMTAwMDAwMFoXDTI3MDEwMTAwMDAwMFowDjEMMAoGA1UE
AwwDd2ViMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDJFfhMdc2/qSRcW0xm
xODHBRL/A4+zlN6u4Xl1FFDPSAUvFeMj83NB3YyoyU/sLr9krvU6fxIKWCxGEO4y
Y760R+jk8cLHxJShQUEM7XOIvxDp02noODzVYk8QkWXrxNKhnDd1ALdBF9vy7GYz
C2RYHRDkYR9rkX1R2XoY11AsQwIDAQABo0cwRTAaBgNVHREEEzARgglhLmV4YW1w
bGWHBAoAAAEwEgYDVR0TAQH/BAgwBgEB/wIBADATBgNVHSUEDDAKBggrBgEFBQcD
ATANBgkqhkiG9w0BAQsFAAOBgQCtw9bLvZ+TAWviDdcmN95hdzA4i0lppwxjPPyr
z2Zf3uq+rmxlFFfborDv/vvXocLWBnKLOIvvsfOl+ZBENq56FUIQH+0Sk66E0ktX
koYEtxjkDszwN6onje8MrmKPE8BK+7Wz7B6XgJX3Rbs6bB9BVvk6J0eUYMT8Ioj9
aSS0GA==
-----END CERTIFICATE-----
"""
"""A certificate with an RSA key, whose serial number 2**64 + 7 exceeds 64 bits."""
CERTIFICATE_REQUEST = """\
-----BEGIN CERTIFICATE REQUEST-----
MIIBdDCB3gIBADAOMQwwCgYDVQQDDAN3ZWIwgZ8wDQYJKoZIhvcNAQEBBQADgY0A
MIGJAoGBAMkV+Ex1zb+pJFxbTGbE4McFEv8Dj7OU3q7heXUUUM9IBS8V4yPzc0Hd
jKjJT+wuv2Su9Tp/EgpYLEYQ7jJjvrRH6OTxwsfElKFBQQztc4i/EOnTaeg4PNVi
TxCRZevE0qGcN3UAt0EX2/LsZjMLZFgdEORhH2uRfVHZehjXUCxDAgMBAAGgJzAl
BgkqhkiG9w0BCQ4xGDAWMBQGA1UdEQQNMAuCCWEuZXhhbXBsZTANBgkqhkiG9w0B
AQsFAAOBgQBfmK0yQX9zNJc5M/1fQxLw9PoB2Yx1nEMyyv8qfiCKoy4tFF92baYl
PoQ0My4Not4llDppgsWF1Yy8XZeXk9Th8T81MN0bUBKMud4JSCZkR+9Nm76L/HZy
g0TFzzkoKurHEZXt5i0VJQ42/WecWUSwGad2AGh6Mf9zbwOwsUfj2A==
-----END CERTIFICATE REQUEST-----
"""


def applied(expression: str) -> Json:
    """A mutation by what is applied to the object."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patch(expression: str) -> Json:
    """A mutation by a JSON Patch."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def document(*mutations: Json, kind: str = "MutatingPolicy", **spec: Any) -> Json:
    """A policy over Pods that are created."""
    made = {"matchConstraints": {"resourceRules": [PODS]}, "mutations": list(mutations), **spec}
    metadata = {"name": "p", "namespace": "shop"}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": made,
    }


def pod(**spec: Any) -> Json:
    """A Pod in the namespace ``shop``."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "nginx", "args": ["a"]}], **spec},
    }
