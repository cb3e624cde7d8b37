"""One file a command, each with a click command named `command`; underscores are helpers.

At import a command module brings click and little else: `kvlint --help` imports them all.
"""
