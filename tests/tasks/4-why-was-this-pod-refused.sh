# The message names the constraint; the policy says what it is about, and the decision log has the request.
name=$(sed -n 's/.*denied the request: \[\([^]]*\)\].*/\1/p' refused)
[ "$name" = required-owner ]
kubectl get requiredowner "$name" -o jsonpath='{.metadata.name}'
kubectl get constrainttemplate requiredowner -o jsonpath='{.metadata.annotations.description}' | grep answers
until waddle decisions tail "$DECISIONS" | grep "$name"; do sleep 1; done
