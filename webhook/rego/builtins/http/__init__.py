"""http.send, for callers that provide a client."""
