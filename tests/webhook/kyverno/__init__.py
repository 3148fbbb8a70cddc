"""Tests of Kyverno's policies in CEL."""
