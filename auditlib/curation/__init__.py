"""Curation of a benchmark: which items to keep, by text ablation, saturation, anomaly rules, judges and people.

:mod:`~auditlib.curation.data` makes the arrays, the other modules decide; ``read -> stages -> adjudication -> review
-> outcomes``.
"""
