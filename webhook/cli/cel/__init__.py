"""waddle cel: check and evaluate expressions of CEL."""
