"""The pipeline as a whole: its stages in their order, and an update by all of them."""
