"""Measures of a ranking against grades."""

from clickbridge.measures.ranking import MEASURES, Measure, evaluate_run, main_measure, parse_measures

__all__ = ["MEASURES", "Measure", "evaluate_run", "main_measure", "parse_measures"]
