"""The cost of hostile policies for requests that they do not match."""
