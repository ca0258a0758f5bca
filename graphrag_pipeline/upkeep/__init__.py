"""Keeping an index well: checks, repairs, archives, and taking off the disk what is removed."""
