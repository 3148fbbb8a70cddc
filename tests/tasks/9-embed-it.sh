# In a Python program of one's own.
env/bin/python -W ignore - <<'PYTHON'
import waddle

policies = waddle.Policies.load("shop/policies")
web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
(violation,) = policies.review(web)
assert violation.denies and violation.message == "the label owner is missing"
PYTHON
