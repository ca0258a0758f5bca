"""What a model, or recorded judges, say of answers: comparisons in pairs and claims."""
