"""kvlint finds the buffer-geometry assumptions that KV-cache transfer code never writes down."""

__version__ = "0.1.0"
