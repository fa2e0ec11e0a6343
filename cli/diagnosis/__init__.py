"""What can be wrong with an installation: checks, each a pure function of what was seen of the cluster.

`snapshot` is what is looked at, `finding` what is told, `checks` the table of all; `cli.survey` does the reading.
"""
