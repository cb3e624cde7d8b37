"""How what one side of a transfer knows reaches the other, unseen by the engine.

Records in memory that any peer may write: none is believed before its keyed checksum is.
"""
