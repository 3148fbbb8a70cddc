"""What the tests of the decision log share: processes, sinks and a disk that forgets."""
