import pytest

from kvlint.engine.sizes import parse_size, show_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("4096 ", 4096), ("512kB", 512_000), ("1MiB", 1 << 20), ("1.5 mib", 3 << 19)],
)
def test_sizes_are_written_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1 parsec", "1ib", "MiB", "0.1", "9" * 99])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match=r"is no size|is less than a byte"):
        parse_size(text)


def test_sizes_are_shown_to_a_tenth():
    shown = [show_size(size) for size in (1023, 1536, 1_258_291, 3 << 30)]
    assert shown == ["1023 bytes", "1.5 KiB", "1.2 MiB", "3.0 GiB"]
