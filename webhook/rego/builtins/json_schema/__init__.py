"""json.match_schema and json.verify_schema."""
