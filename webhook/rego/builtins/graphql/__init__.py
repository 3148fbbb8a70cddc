"""graphql.*: documents and schemas, read and checked."""
