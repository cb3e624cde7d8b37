"""From paths to a report: which files, which rules, and what the rules' claims come to."""
