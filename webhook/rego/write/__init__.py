"""The generator: checked, ordered literals in, Python source and functions out.

Only names made here and ``repr`` of constants appear in what is written. ``docs/rego.md`` has the
table of stages.
"""
