"""What the pipeline costs and how good it is, measured."""
