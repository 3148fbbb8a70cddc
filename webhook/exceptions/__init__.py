"""Exceptions: violations that are known, and excused for a time.

A policy is evaluated first; what it found is excused afterwards, by whichever exception is about it.
So a conforming object pays nothing, and what is excused is known exactly.
:mod:`~webhook.exceptions.reading` reads an object, :mod:`~webhook.exceptions.stage` makes of all of
them the stage of a review, :mod:`~webhook.exceptions.parts` takes parts out of an object.
"""
