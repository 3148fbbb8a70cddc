"""The generator: checked, ordered literals in, Python source and functions out.

The source contains only names made here and ``repr`` of constants. ``docs/rego.md`` has the table
of stages.
"""
