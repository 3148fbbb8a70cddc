# The workflow's own commands, as a runner types them: annotations, and a file for code scanning.
cd shop
sed -n 's/.*run: \(waddle .*\)/\1/p' .github/workflows/policies.yaml > steps
[ "$(wc -l < steps)" = 2 ]
sh -e steps > annotations || [ $? = 1 ]
grep '::error file=manifests/deployment.yaml,line=' annotations
grep '"the label owner is missing"' waddle.sarif
