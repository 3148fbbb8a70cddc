"""Whether images are signed: policies, signatures, certificates, transparency logs, attestations.

What stands beside an image is read from a registry or a folder (``collection``), and decided by pure
functions of those bytes, a policy, its root of trust and a time (``verification``). What cannot be
read, or understood, never counts for a signature: it becomes a reason or an error.

>>> from webhook.images.policy import InvalidVerificationPolicy, read_policy
>>> document = {"apiVersion": "waddle.dev/v1alpha1", "kind": "VerificationPolicy",
...             "metadata": {"name": "ours"}, "spec": {"images": ["ghcr.io/ours/*"]}}
>>> try:
...     read_policy(document, read=lambda name: b"")
... except InvalidVerificationPolicy as error:
...     print(error)
VerificationPolicy ours: spec.authorities is empty: nobody could have signed
"""
