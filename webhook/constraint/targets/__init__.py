"""The targets: the kinds of values that can be reviewed.

A target defines the input of policies and ``spec.match``: ``admission`` matches AdmissionReviews by
kinds and namespaces, ``gcp`` the assets of Google Cloud by ancestry.
"""
