"""The checked transport on NIXL: its agent and handle classes, interposed.

Everything that knows NIXL's Python interface is here; read against 1.5.1.
"""
