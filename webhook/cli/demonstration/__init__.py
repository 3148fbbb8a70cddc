"""The parts of ``waddle demo``: a control plane, processes of this program, a balancer, traffic.

It puts together, as an installation would, what other commands are: nothing of it decides.
"""
