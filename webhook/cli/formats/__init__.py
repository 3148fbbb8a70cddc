"""Writes the findings of `waddle test`, `verify` and `audit` in the formats that pipelines read."""
