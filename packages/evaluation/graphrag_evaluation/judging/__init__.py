"""Judgments of answers by a model or by recorded judges: comparisons in pairs, and claims."""
