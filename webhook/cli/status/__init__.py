"""waddle status: what each replica enforces."""
