"""Names and patterns that conditions are made of."""

PATTERNS = (
    ["default"], ["kube-*"], ["*-system"], ["*be*"], ["*"], ["a", "kube-*"], ["x*", "*t"], [],
)  # fmt: skip
NAMES = ("web", "web*", "*-b", "*e*", "*", "x", "web-*", "")
KINDS = (
    [], [{"apiGroups": [""], "kinds": ["Pod"]}], [{"apiGroups": ["*"], "kinds": ["*"]}],
    [{"apiGroups": ["apps"], "kinds": ["*"]}, {"kinds": ["Namespace"]}], [{"apiGroups": [], "kinds": []}],
    [{"apiGroups": ["*"], "kinds": ["Deployment", "Role"]}],
)  # fmt: skip
