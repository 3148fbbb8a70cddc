"""What the API server asks a webhook about, by configurations, and which policies nobody is asked about.

It is pure: policies and configurations as they are written in, a verdict for each policy out. It must
not know files or the API server.
"""
