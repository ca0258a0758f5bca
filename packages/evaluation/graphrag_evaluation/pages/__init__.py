"""The results of an experiment as one HTML page: which method to use, and how sure that is."""

from graphrag_evaluation.pages.page import (
    WrittenEvaluation as WrittenEvaluation,
    write_evaluation as write_evaluation,
)
