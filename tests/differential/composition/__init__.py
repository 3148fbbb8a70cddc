"""Composition: every kind of literal beside every other, in every place, asked of the real OPA too.

Random policies find what one form does wrong; what a form does wrong to the literals after it
shows only where those are there. ``forms`` are the literals, ``places`` where two of them stand,
``values`` what they are asked about, ``bodies`` longer random ones, ``comparison`` asks both
engines. ``python -m tests.differential.composition`` asks everything; a part runs with the tests.
"""
