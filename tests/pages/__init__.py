"""What the pages tell a reader to type, and what comes of it."""
