"""Rego files laid out anew, byte by byte as OPA's ``fmt`` lays them out, comments kept.

``module`` is the door. A parsed file becomes nodes that know which text they came from (``placed``),
since the layout follows where things stood; then lines are written from these.
"""
