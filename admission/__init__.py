"""The admission webhook: repairs what is unambiguous, refuses what cannot work, and says how to write it.

Read `review.py` first: it decides about pods. `rules/` holds the rules, `repairs.py` the changes, `quota/` the gates.
"""
