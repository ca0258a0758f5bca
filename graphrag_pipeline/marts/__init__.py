"""The dbt marts over a release: built beside, tested, and put in place."""
