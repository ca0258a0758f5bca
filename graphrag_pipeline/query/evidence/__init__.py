"""Evidence in text: the sentences of retrieved chunks that say most to a question."""
