"""What is in force and what was decided by it: the values that who loads, admits and audits share.

It must not know where policies come from, nor who asks.
"""
