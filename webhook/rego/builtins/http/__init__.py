"""http.send, for those who lend a client."""
