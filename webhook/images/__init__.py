"""Verification of image signatures: policies, certificates, transparency logs, attestations.

Signatures and attestations are read from a registry or a folder (``collection``). Pure functions
judge them by a policy, its root of trust and a time (``verification``). Content that cannot be read
or understood never counts as a signature: it becomes a reason or an error.

>>> from webhook.images.policy import InvalidVerificationPolicy, read_policy
>>> document = {"apiVersion": "waddle.dev/v1alpha1", "kind": "VerificationPolicy",
...             "metadata": {"name": "ours"}, "spec": {"images": ["ghcr.io/ours/*"]}}
>>> try:
...     read_policy(document, read=lambda name: b"")
... except InvalidVerificationPolicy as error:
...     print(error)
VerificationPolicy ours: spec.authorities is empty: nobody could have signed
"""
