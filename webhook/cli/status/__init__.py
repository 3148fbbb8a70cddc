"""waddle status: the policies that each replica enforces."""
