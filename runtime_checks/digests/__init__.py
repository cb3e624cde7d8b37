"""Digests of pages: what was there at one moment, in eight bytes a page.

`reference` says what a digest is, in numpy; `host` reads host memory, `kernels` and `device` that
of a GPU; `digester` chooses between them. All give the same number for the same bytes and seed.
"""
