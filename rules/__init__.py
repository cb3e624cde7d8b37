"""The rules, one file each; a new file in this folder is a new rule, nothing else is touched."""
