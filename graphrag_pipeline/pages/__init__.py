"""Pages and pictures for people: the explorer and the overview."""
