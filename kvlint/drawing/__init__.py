"""Pictures of captured geometry, and what they are made of; nothing here but the standard library.

Every number in a picture is one of `kvlint.geometry`, or follows from one; nothing is rounded
before it is drawn.
"""
