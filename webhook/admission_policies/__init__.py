"""ValidatingAdmissionPolicies and their bindings, read and evaluated as an API server does.

The package is pure. :mod:`~webhook.admission_policies.reading` compiles policies and bindings,
:mod:`~webhook.admission_policies.matching` decides whether they match a request,
:mod:`~webhook.admission_policies.parameters` finds the parameters of a binding, and
:mod:`~webhook.admission_policies.verdict` evaluates a policy. ::

    policy, binding = read_policy(document), read_binding(other)
    if policy.matches(request, namespace) and binding.matches(request, namespace):
        for parameter in parameters_of(policy, binding, request, find):
            verdict = evaluate(policy, request, namespace, parameter)

A request is the ``request`` of an AdmissionReview; a namespace is its Namespace, or None.
"""
