"""Sizes of files as people write them."""

import re

_SIZE = r"(?i)\s*(\d{1,15}(?:\.\d{1,6})?)\s*((?:[kmg]i?)?b?)\s*"
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3}


def parse_size(text: str) -> int:
    """Bytes of `4096`, `512 kB` (thousands) or `1.5MiB` (powers of 1024).

    Raises ValueError for anything else, and for less than one byte.
    """
    found = re.fullmatch(_SIZE, text)
    if found is None:
        raise ValueError(f"{text!r} is no size; sizes are bytes, or like 512kB or 1MiB")
    number, unit = found[1], found[2].lower().removesuffix("b")
    size = int(float(number) * (1024 if unit.endswith("i") else 1000) ** _UNITS[unit.rstrip("i")])
    if size < 1:
        raise ValueError(f"{text!r} is less than a byte")
    return size


def show_size(size: int) -> str:
    """`1.2 MiB`, rounded to a tenth."""
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << bits:
            return f"{size / (1 << bits):.1f} {unit}"
    return f"{size} bytes"
