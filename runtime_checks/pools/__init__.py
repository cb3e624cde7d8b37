"""The memory pools of an engine: what it says of their regions, against the tensors themselves."""
