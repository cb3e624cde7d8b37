"""What the campaign draws: how many groups, regions and slots, how memory is cut and listed.

A group is what one set of slots selects: at least two regions of equal counts. Where nothing
declares the groups they are known by their counts, so groups that select different slots have
different counts, on either side.
"""

from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st

Layout = Literal["apart", "touching", "one", "bare"]
Form = Literal["Nx3", "Nx5", "object"]
Operation = Literal["WRITE", "READ"]


@dataclass(frozen=True)
class Group:
    """regions, slots of each on the initiator's side (`local`) and the peers', bytes a slot."""

    regions: int
    local: int
    remote: int
    item: int


@dataclass(frozen=True)
class Shape:
    """One geometry for an initiator and its peers.

    layout       apart: gaps between regions; touching: none, but a registration each;
                 one: neither, one registration covers all, and the geometry is declared;
                 bare: the same undeclared, so that nothing says what the regions are
    interleaved  whether the list takes a region of each group in turn, as keys and values do
    forms        of the initiator's own list and of those of its peers
    strangers    whether the peers are known by their metadata only, as those of other processes
    seed         of everything smaller: slots, order, dtype, what a mutator chooses
    """

    groups: tuple[Group, ...]
    layout: Layout
    interleaved: bool
    forms: tuple[Form, Form]
    operation: Operation
    peers: int
    strangers: bool
    seed: int

    @property
    def order(self) -> list[int]:
        """The group of each region, in the order of the lists."""
        if not self.interleaved:
            return [g for g, group in enumerate(self.groups) for _ in range(group.regions)]
        most = max(group.regions for group in self.groups)
        return [g for n in range(most) for g, group in enumerate(self.groups) if n < group.regions]


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    layout = draw(st.sampled_from(("apart", "touching", "one", "bare")))
    number = draw(st.integers(1, 8))
    # Declared groups may have counts in common.
    unique = layout in ("apart", "touching")
    counts = st.lists(st.integers(2, 64), min_size=number, max_size=number, unique=unique)
    local = draw(counts)
    remote = local if draw(st.booleans()) else draw(counts)
    items = st.sampled_from((16, 32, 48, 64))
    same = draw(items) if draw(st.integers(0, 3)) else None
    return Shape(
        groups=tuple(
            Group(draw(st.integers(2, 4)), mine, theirs, same or draw(items))
            for mine, theirs in zip(local, remote, strict=True)
        ),
        layout=layout,
        interleaved=draw(st.booleans()),
        forms=(draw(FORMS), draw(FORMS)),
        operation=draw(st.sampled_from(("WRITE", "READ"))),
        peers=draw(st.integers(1, 3)),
        strangers=draw(st.booleans()),
        seed=draw(st.integers(0, 2**32 - 1)),
    )


FORMS = st.sampled_from(("Nx3", "Nx5", "object"))
