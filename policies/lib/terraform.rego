package lib.terraform

# What a resource is to be: undefined for what is deleted, only read, or left as it is.
planned := input.review.change.after if {
  some action in input.review.change.actions
  action in {"create", "update"}
}

type := input.review.type

# Whether a field's value is known only once the plan is applied: another resource gives it.
later(field) if object.get(input.review.change, ["after_unknown", field], false) == true

# The entries of a block; none where it is absent.
blocks(owner, field) := [found | found := owner[field][_]; is_object(found)]

# The texts of some fields, each of which holds one or a list of them.
texts(owner, fields) := {found | some field in fields; some found in listed(owner[field]); is_string(found)}

listed(value) := value if is_array(value)

listed(value) := [value] if is_string(value)

says(rule) := sprintf("%s: %s", [input.review.address, rule])

# What stands for every address there is.
anywhere := {"0.0.0.0/0", "::/0", "0::/0", "*", "any", "internet"}

is_anywhere(source) if lower(source) in anywhere

# The ports that must not be open to everybody: those of remote administration unless said.
guarded := object.get(input.parameters, "ports", [22, 3389])

# Whether a range as "22", "20-30" or "*" holds a port.
holds("*", _)

holds(range, port) if to_number(range) == port

holds(range, port) if {
  [first, last] := split(range, "-")
  to_number(first) <= port
  port <= to_number(last)
}

# The labels or tags that are missing or empty.
missing(given) := [key | some key in input.parameters.keys; object.get(given, key, "") == ""]
