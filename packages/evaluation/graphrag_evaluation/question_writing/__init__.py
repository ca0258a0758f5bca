"""Question sets: taken from files, or made by a model from the corpus."""
