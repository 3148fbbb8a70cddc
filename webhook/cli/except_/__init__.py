"""``waddle except``: the narrowest exceptions for violations."""
