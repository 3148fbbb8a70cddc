"""Wire shapes, both ways: bytes and JSON in, values out. Pure; knows no policy.

What enters may have any shape: readers here give a value, or say what is wrong with it and where.
Each module is about one shape (an AdmissionReview, a Config, a status, YAML).

>>> from webhook.api.gvk import gvk_of
>>> str(gvk_of({"apiVersion": "apps/v1", "kind": "Deployment"}))
'apps/v1, Kind=Deployment'
"""
