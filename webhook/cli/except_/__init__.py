"""``waddle except``: exceptions for what was found, as narrow as can be."""
