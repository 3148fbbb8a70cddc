# The policy, the webhook, the program: what was refused is allowed, and nothing is left.
kubectl delete -f shop/policies/required-owner/constraint.yaml
kubectl delete -f shop/policies/required-owner/template.yaml
waddle uninstall --webhooks --yes
until kubectl create deployment web --image=nginx; do sleep 1; done
env/bin/pip uninstall --quiet --yes waddle-admission
if [ -e env/bin/waddle ] || env/bin/python -c 'import webhook' 2> /dev/null; then exit 1; fi
