"""Forms of Go's own library that OPA shows: numbers, times."""
