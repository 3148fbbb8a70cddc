# A policy, its tests, and an object that it denies.
waddle init shop
waddle verify shop/policies
waddle test shop/policies shop/manifests > denied || [ $? = 1 ]
grep 'the label owner is missing' denied
