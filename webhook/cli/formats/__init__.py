"""What `waddle test`, `verify` and `audit` found, in the formats that pipelines read."""
