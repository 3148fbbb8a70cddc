module provider

go 1.26
