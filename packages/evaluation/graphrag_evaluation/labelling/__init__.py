"""Answers labelled by people: sheets to fill in, labels read back, and how far raters agree."""
