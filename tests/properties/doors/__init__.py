"""Random policies and objects through every door: all say the same.

``python -m tests.properties.doors FIRST COUNT`` tries more of them than the test does.
"""
