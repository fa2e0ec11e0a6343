"""The Helm chart, and the files in it and next to it that are generated from the code."""
