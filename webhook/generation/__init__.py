"""ValidatingAdmissionPolicies and bindings, made of templates and constraints in CEL."""
