"""The admission webhook: repairs what is unambiguous, refuses what cannot work, and says how to write it.

Read `review.py` first: it decides. `rules.py` and `escapes.py` hold the rules, `repairs.py` the changes.
"""
