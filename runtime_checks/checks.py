"""What is checked on live transfers: one entry a check, and what a check says when it fails.

A code stands where the rule of that code assumes the same relation; evidence of the check then
refutes what the rule found in the code. `refused` marks what NIXL 1.5.1 refuses by itself: there
the engine gets NIXL's own exception in every mode, since engines test for its type, and what
kvlint knows is added to it as a note.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

Side = Literal["local", "remote"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is checked.

    name     as it stands in evidence and messages
    summary  what is wrong when it fails, one line
    code     rule that assumes the same relation, or None
    formula  that relation
    refused  whether NIXL refuses the call by itself
    """

    name: str
    summary: str
    code: str | None = None
    formula: str | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """One slot of one region of a descriptor list, or a byte of a registration.

    region  number in its list, from 0
    name    as an adapter declared it, else None
    layer   the model's layer, where declared
    slot    in that region, None where the fault is not about one slot
    byte    from the region's first byte, None likewise
    list, index  number of the descriptor list in its process, and of the slot's descriptor in it;
            None where the fault is in no list
    """

    side: Side
    region: int | None
    name: str | None = None
    layer: int | None = None
    slot: int | None = None
    byte: int | None = None
    list: int | None = field(default=None, compare=False)
    index: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Breach:
    """What a check found. Pure data: no stack, no mode.

    message  one line with region, layer, slot, byte and both sides' values, as far as known
    values   the two values that should agree, each under its name
    code, formula  of the check, or of the rule whose relation the values refute in particular
    meant    the place that was meant, where what is wrong shows which
    """

    check: Check
    message: str
    values: Mapping[str, int | str]
    place: Place | None = None
    code: str | None = None
    formula: str | None = None
    meant: Place | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))
        if self.code is None:
            object.__setattr__(self, "code", self.check.code)
        if self.formula is None:
            object.__setattr__(self, "formula", self.check.formula)


OUT_OF_REGION: Final = Check(
    "out-of-region",
    "descriptors reach past the end of their region",
    "KV102",
    "the count given for all regions <= slots of region i",
)
UNREGISTERED: Final = Check("unregistered", "descriptors lie in no registered memory", refused=True)
INDEX_DTYPE: Final = Check(
    "index-dtype", "indices are not integers, and NIXL casts them without a word"
)
INDEX_WIDTH: Final = Check(
    "index-width",
    "an index does not fit 32 bits, and NIXL takes another one",
    "KV401",
    "every flat index fits 32 bits",
)
INDEX_RANGE: Final = Check("index-range", "an index is not in its list", refused=True)
UNEQUAL_COUNTS: Final = Check(
    "unequal-counts", "the two sides have different numbers of indices", refused=True
)
UNEQUAL_LENGTHS: Final = Check(
    "unequal-lengths", "two paired descriptors have different lengths", refused=True
)
COLUMN: Final = Check("column", "regions of one group get different slots")
UNASKED_SLOT: Final = Check(
    "unasked-slot", "a transfer selects other slots than the engine asked for"
)
PAIRING: Final = Check(
    "pairing",
    "a region is sent to another region of the peer",
    "KV303",
    "region i here is region i there",
)
DUPLICATE_DESTINATION: Final = Check(
    "duplicate-destination", "one transfer writes one slot from two sources"
)
OVERLAPPING_DESTINATION: Final = Check(
    "overlapping-destination", "two descriptors of one transfer write the same bytes"
)
OVERLAP_IN_FLIGHT: Final = Check(
    "overlap-in-flight", "two transfers in flight write the same bytes"
)
STALE_LIST: Final = Check(
    "stale-list",
    "memory of a prepared list was deregistered since",
    "KV504",
    "what is built on registered memory ends before the registration",
)
RELEASED_HANDLE: Final = Check(
    "released-handle", "a handle is used after its release, which would crash the process"
)
RELEASED_IN_FLIGHT: Final = Check(
    "released-in-flight",
    "a handle is released while its transfer still moves bytes",
    "KV504",
    "no transfer still uses the memory",
)
DEREGISTERED_IN_FLIGHT: Final = Check(
    "deregistered-in-flight",
    "memory is deregistered while a transfer still uses it",
    "KV504",
    "no transfer still uses the memory",
)
NEVER_POLLED: Final = Check(
    "never-polled", "a transfer was never asked about, so its notification may never leave"
)
COLLECTED_MEMORY: Final = Check(
    "collected-memory",
    "the tensor that was registered is gone, its memory may be another's",
    "KV403",
    "the tensor outlives the address",
)
POOL_LISTS: Final = Check(
    "pool-lists",
    "a pool's lists of regions are not equally long",
    "KV304",
    "parallel lists are equally long",
)
POOL_MEMORY: Final = Check("pool-memory", "a region begins in no tensor of its pool")
POOL_LENGTH: Final = Check("pool-length", "a region reaches past the tensor that it lies in")
ITEM_LENGTH: Final = Check(
    "item-length", "an item length is not what a slot of the region's tensor takes"
)
SLOT_LAYOUT: Final = Check(
    "slot-layout",
    "the bytes of one slot are not one run",
    "KV404",
    "the tensor is contiguous and starts its allocation",
)
SLOT_COVERAGE: Final = Check(
    "slot-coverage", "some bytes of a cache's slots are in no region, and stay where they are"
)
REGION_OVERLAP: Final = Check("region-overlap", "two regions of one list share bytes")
REGION_REGISTERED: Final = Check("region-registered", "a region is registered only in part")
COPY_COUNTS: Final = Check(
    "copy-counts", "a copy between two pools has more indices of the one than of the other"
)
COPY_RANGE: Final = Check("copy-range", "an index of a copy between two pools is not in its pool")
COPY_PAGES: Final = Check("copy-pages", "a copy of whole pages is given a part of one")
COPY_LENGTHS: Final = Check(
    "copy-lengths", "a page has another size, or type, in the pool that it is copied to"
)
SOURCE_CHANGED: Final = Check("source-changed", "source bytes changed between post and completion")
ARRIVED_WRONG: Final = Check("arrived-wrong", "what arrived is not what was sent")
PAGE_CHANGED: Final = Check("page-changed", "a page holds other bytes than at the stage before")
PAGE_MISPLACED: Final = Check("page-misplaced", "a page holds what belongs to another page")
PAGE_REUSED: Final = Check(
    "page-reused", "a page is written to while a transfer in flight still uses it"
)
EARLY_READ: Final = Check("early-read", "a page is read before its bytes have arrived")

LAUNCH_EXTENT: Final = Check(
    "launch-extent", "a Triton kernel would touch bytes outside the storage of its argument"
)
LAUNCH_OVERFLOW: Final = Check(
    "launch-overflow",
    "an index of a Triton kernel does not fit its integers, and another place is touched",
    "KV402",
    "id x stride fits 31 bits in the kernel",
)
LAUNCH_ELEMENT_SIZE: Final = Check(
    "launch-element-size",
    "a Triton kernel counts a region's rows in elements of another size",
    "KV203",
    "both operands count the same thing",
)
LAUNCH_INDEX_RANGE: Final = Check(
    "launch-index-range", "an index that a Triton kernel loads leads outside the storage"
)

CHECKS: Final = MappingProxyType(
    {check.name: check for check in list(globals().values()) if isinstance(check, Check)}
)
"""All checks, by name."""
