"""Runs in Dagster from the command line, so that they are in the UI's history."""
