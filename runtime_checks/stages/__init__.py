"""The stages of a request's pages: what they held when, and where that first changed.

`memory` is a pool's regions as arrays, `ledger` keeps what was seen and compares, `sayings` puts
it into words, all pure; `noting` digests pages for it, and `records` is what a file gets of it.
`looks` reads such a file, `story` puts processes together and `telling` says what it shows: these
need nothing that is not there where no engine is.
"""
