"""What methods share where a model writes the answer: calls, lists, map-reduce, references."""
