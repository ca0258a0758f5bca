"""The commands of many workers."""
