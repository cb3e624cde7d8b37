"""The runtime companion: the same assumptions, checked on live pools and transfers.

Nothing lives here yet. The companion will read real pools and interpose the real
transport, and will never import the analysis: what the two halves share is
`kvlint.geometry` and `kvlint.assumptions`.
"""
