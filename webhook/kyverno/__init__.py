"""Kyverno's policies in CEL (``policies.kyverno.io``).

A policy is a ValidatingAdmissionPolicy with more features: it includes its own binding, applies to
pod controllers in rewritten form (:mod:`autogen`), and may read objects and images (:mod:`world`).
:mod:`validating_policy` compiles and evaluates it, :mod:`library` has the functions. Source:
Kyverno 1.18: pkg/cel/policies/vpol and pkg/cel/autogen, and its kyverno/sdk. The package is pure.
"""
