"""Plots as SVG: lines over a scale, bars in groups, flame graphs. The same data give the same bytes.

A plotting library would be the largest dependency of the project, for three kinds of picture.
"""
