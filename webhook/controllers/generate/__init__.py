"""ValidatingAdmissionPolicies made of constraints in CEL: compared with the cluster, and kept."""
