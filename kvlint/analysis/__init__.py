"""From source text to facts: outline, terms, lowering, linking. Checked code is never run."""
