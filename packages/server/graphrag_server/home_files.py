"""The server's files in a home, as checks, backups and purges treat them."""

from graphrag_pipeline.upkeep.home_files import HomeFile

KEYS = HomeFile(about="The keys of those who call the server, as hashes.")
ACCOUNTS = HomeFile(about="What each key has taken.")
AUDIT = HomeFile(about="Who asked what.", is_folder=True)
