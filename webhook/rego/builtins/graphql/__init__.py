"""graphql.*: parses and checks documents and schemas."""
