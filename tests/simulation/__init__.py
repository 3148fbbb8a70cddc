"""Simulated worlds: the product's own code on one loop, with virtual time and a seed.

``doors`` lends clocks, chance and threads; ``loop`` chooses what happens next; ``network`` and
``disk`` are what lies between processes and below them. A world puts processes together, does
things to them by chance, heals, waits until all rests, and says what does not hold.
"""
