"""Triton kernels before they are launched: what a launch would touch, from the kernel's own source.

`reading` reads the source, which is never run, into accesses; `terms` is what addresses and masks
are made of; `bounds` says how far an access can reach at most, `points` whether it does, at one
program and lane; `deciding` makes findings of that. All this is pure. `facts` looks at a launch's
arguments, `tables` at values on the device, `hooks` stands in Triton's way.
"""
