"""The Helm chart, and what of it and beside it is made from the code."""
