"""What every chapter needs: errors, settings, identities, text, tokens, prompts, progress."""
