"""The checks of `halfcard doctor`: each is a pure function of a snapshot of the cluster.

`cli.inputs.survey` reads the cluster into a `snapshot`; `checks` is the table of all checks; each returns a `finding`.
A folder has the checks of one subject.
"""
