"""ValidatingAdmissionPolicies and their bindings, read and evaluated as an API server does.

All of it is pure. :mod:`~webhook.admission_policies.reading` compiles what files hold,
:mod:`~webhook.admission_policies.matching` tells which requests a policy is about,
:mod:`~webhook.admission_policies.parameters` finds what a binding names, and
:mod:`~webhook.admission_policies.verdict` evaluates. ::

    policy, binding = read_policy(document), read_binding(other)
    if policy.matches(request, namespace) and binding.matches(request, namespace):
        for parameter in parameters_of(policy, binding, request, find):
            verdict = evaluate(policy, request, namespace, parameter)

A request is the ``request`` of an AdmissionReview, a namespace the Namespace that it is in, or None.
"""
