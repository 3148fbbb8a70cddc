# The same policy in a cluster: applied, enforced by every replica, and a Deployment is refused.
kubectl apply -f shop/policies/required-owner/template.yaml
until kubectl apply -f shop/policies/required-owner/constraint.yaml; do sleep 1; done
waddle wait --for=enforced RequiredOwner/required-owner
if kubectl create deployment web --image=nginx 2> refused; then exit 1; fi
grep 'the label owner is missing' refused
