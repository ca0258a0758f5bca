"""Pages and pictures for people: explorer, overview, evaluation."""
