"""The stages of a request's pages: what they held when, and where that first changed.

Pure are `memory`, a pool's regions as arrays, `notes`, what is seen of them, `ledger`, which keeps
that and compares, `locating`, and `sayings`, which puts it into words. `noting` digests pages for
it, of `copying` also those of host caches; `records` is what a file gets of it. `looks` reads such
a file, `story` puts processes together and `telling` says what it shows: these need nothing that
is not there where no engine is.
"""
