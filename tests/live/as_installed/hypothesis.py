"""Stands before Hypothesis in the path of the servers under test, which users run without it.

kio registers strategies with Hypothesis where it finds it, and that more than doubles the start of every broker.
"""

raise ImportError("Hypothesis is part of the tests, not of an installation")
