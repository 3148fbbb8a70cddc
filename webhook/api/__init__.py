"""Wire formats: decodes bytes and JSON to values, and encodes them. Pure; knows no policy.

Input may have any form: readers return a value, or raise an error that names the fault and its
place. Each module has one format (an AdmissionReview, a Config, a status, YAML).

>>> from webhook.api.gvk import gvk_of
>>> str(gvk_of({"apiVersion": "apps/v1", "kind": "Deployment"}))
'apps/v1, Kind=Deployment'
"""
