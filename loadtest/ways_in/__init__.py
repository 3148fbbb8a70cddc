"""A search for ways past the policies that are shipped."""
