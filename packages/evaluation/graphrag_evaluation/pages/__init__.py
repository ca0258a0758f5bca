"""The results of an experiment as one HTML page: which method to use, and how sure that is."""

from graphrag_evaluation.pages.page import WrittenEvaluation, write_evaluation

__all__ = ["WrittenEvaluation", "write_evaluation"]
