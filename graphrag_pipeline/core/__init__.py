"""Foundations of every chapter: errors, settings, identities, text, tokens, prompts, progress."""
