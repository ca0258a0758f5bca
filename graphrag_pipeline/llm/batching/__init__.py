"""The batch lane: requests go in files, at half the price, and are answered within a day."""
