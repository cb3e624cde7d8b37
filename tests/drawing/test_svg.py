"""The picture is to scale, nothing in it overlaps, and it says what is in the geometry."""

from xml.etree import ElementTree

from kvlint.drawing import svg
from tests.drawing.samples import of_0_5_21


def bars(picture, sort="kvg-slots"):
    return [float(e.get("width")) for e in picture.iter("rect") if e.get("class") == sort]


def test_bars_are_as_long_as_regions_and_slots():
    picture = svg.layout(of_0_5_21())
    of_slots, of_regions = bars(picture)[::2], bars(picture)[1::2]
    lengths = [region.length for region in of_0_5_21().regions]
    scales = [length / bar for length, bar in zip(lengths, of_regions, strict=True)]
    assert max(scales) / min(scales) < 1.001
    strides = [region.stride for region in of_0_5_21().regions]
    scales = [length / bar for length, bar in zip(strides, of_slots, strict=True)]
    assert max(scales) / min(scales) < 1.001


def test_a_document_is_svg_of_its_own():
    root = ElementTree.fromstring(svg.document(svg.layout(of_0_5_21())).encode())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    said = "".join(root.itertext())
    assert "layer 2 c4 index key" in said
    assert "161 slots · 1.30 MiB" in said
