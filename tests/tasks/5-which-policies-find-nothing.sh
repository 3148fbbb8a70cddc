# On files, a constraint that matched no object is named; in a cluster the audit has each one's total.
waddle new template NeverAsked -d shop/policies
waddle new constraint NeverAsked -d shop/policies
sed -i 's/\[Deployment\]/[StatefulSet]/' shop/policies/never-asked/constraint.yaml
waddle test shop/policies shop/manifests 2> told || [ $? = 1 ]
grep 'matched no object: NeverAsked/never-asked' told
waddle audit --once -o json > audit.json || [ $? = 1 ]
grep '"RequiredOwner' audit.json
