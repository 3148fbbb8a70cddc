"""Kyverno's policies in CEL (``policies.kyverno.io``).

A policy is a ValidatingAdmissionPolicy with more: it carries its own binding, is written again for
pod controllers (:mod:`autogen`), and may ask the world (:mod:`world`) for objects and images.
:mod:`validating_policy` compiles and evaluates it, :mod:`library` has the functions. Read in
Kyverno 1.18: pkg/cel/policies/vpol and pkg/cel/autogen, and its kyverno/sdk.
"""
