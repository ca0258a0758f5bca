"""The server's files in a home, as checks, backups and purges treat them."""

from graphrag_pipeline.upkeep.home_files import HomeFile, copy_sqlite, sqlite_fault
from graphrag_server.conversations import purge_conversations

KEYS = HomeFile(about="The keys of those who call the server, as hashes.")
ACCOUNTS = HomeFile(about="What each key has taken.")
AUDIT = HomeFile(about="Who asked what.", is_folder=True)
CONVERSATIONS = HomeFile(
    about="What callers asked, the answers, and what people said of them.",
    in_backup=True,
    is_linked=False,
    copy=copy_sqlite,
    fault=sqlite_fault,
    remedy="delete it: conversations are lost then, and nothing else",
    purge=purge_conversations,
)
