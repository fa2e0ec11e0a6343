"""What can be wrong with an installation: checks, each a pure function of what was seen of the cluster.

`survey` reads the cluster into a `snapshot`; `checks` is the table of all checks; each returns a `finding`.
"""
