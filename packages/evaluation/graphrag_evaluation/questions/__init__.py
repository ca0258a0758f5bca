"""Questions and what is known to be right about them: read from files, kept, written by a model."""
