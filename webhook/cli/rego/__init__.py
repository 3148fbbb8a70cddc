"""waddle rego: opa's eval, test and check, with its options and outputs."""
