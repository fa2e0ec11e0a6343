"""The Helm chart, and the files in it and next to it that are made from the code."""
