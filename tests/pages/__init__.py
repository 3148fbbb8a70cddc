"""Commands of the pages, and their results."""
