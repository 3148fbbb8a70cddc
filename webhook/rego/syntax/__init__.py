"""Rego's syntax: source text in, syntax trees out, and back; nothing is resolved here.

For example, ``p if input.x`` becomes a rule with a head and a body of one literal.
"""
