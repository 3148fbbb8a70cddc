# One Deployment is left out by its label, tried on files first; every other is refused as before.
excused='{key: exceptions.example.com/owner, operator: DoesNotExist}'
sed -i "s|^  match:|&\n    labelSelector: {matchExpressions: [$excused]}|" shop/policies/required-owner/constraint.yaml
kubectl create deployment agent --image=nginx --dry-run=client -o yaml \
  | kubectl label --local -f - exceptions.example.com/owner=until-march -o yaml > agent.yaml
waddle test shop/policies agent.yaml
kubectl apply -f shop/policies/required-owner/constraint.yaml
waddle wait --for=enforced RequiredOwner/required-owner
kubectl apply -f agent.yaml
if kubectl create deployment web --image=nginx 2> refused; then exit 1; fi
grep 'the label owner is missing' refused
