"""Rego's syntax: source text in, syntax trees out, and back; nothing is resolved here."""
