"""Runs the command line: ``python -m graphrag_pipeline.cli``."""

from graphrag_pipeline.cli.app import main

main()
