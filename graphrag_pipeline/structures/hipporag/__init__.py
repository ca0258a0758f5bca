"""HippoRAG's synonym edges between entities whose names are alike."""
