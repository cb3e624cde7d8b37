"""What an engine says of its regions, as it hands them to its transport."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kvlint.geometry import Geometry, GeometryError, Region
from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.pools.tensors import Around, Gone, Tensor, never


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One region: what the engine says, and what its adapter knows of it besides.

    name             unique in its list
    list             the engine's numbered list that it is in: "kv", "state.swa", "aux"
    address, length, item_length  bytes, as the engine has them
    transfer_length  bytes moved of each slot; None: the item length
    layer, role, page_size, group  as those of `kvlint.geometry.Region`
    slot_rows        entries of the tensor's first dimension that one slot is; None where the
                     adapter cannot know
    tensor           that holds it; None: looked for by address
    kind, device     of its memory, where no tensor is at hand
    """

    name: str
    list: str
    address: int
    length: int
    item_length: int
    transfer_length: int | None = None
    layer: int | None = None
    role: str | None = None
    page_size: int | None = None
    group: str | None = None
    slot_rows: int | None = None
    tensor: Tensor | None = None
    kind: str | None = None
    device: int | None = None

    @property
    def end(self) -> int:
        return self.address + self.length

    @property
    def moved(self) -> int:
        """Bytes moved of each slot."""
        return self.item_length if self.transfer_length is None else self.transfer_length

    @property
    def gone(self) -> Gone:
        """Whether its memory is."""
        return self.tensor.gone if self.tensor is not None else never

    def region(self) -> Region:
        """The same for the transport's checks. Raises GeometryError for what cannot be."""
        tensor = self.tensor
        kind = self.kind or (tensor.kind if tensor else "VRAM")
        device = self.device if self.device is not None else tensor.device if tensor else 0
        return Region(
            name=self.name,
            address=self.address,
            length=self.length,
            stride=self.item_length,
            transfer_length=self.moved,
            memory_kind=kind,
            device=0 if kind == "DRAM" else device,
            list=self.list,
            layer=self.layer,
            role=self.role,
            dtype=tensor.dtype if tensor else None,
            element_size=tensor.element_size if tensor else None,
            page_size=self.page_size,
            group=self.group,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A tensor of which whole slots are moved: every byte of one is to be in some region.

    name       for people
    list       the list whose regions move it
    dimension  its dimension of slots
    group      of those regions; regions without a group serve every group
    """

    name: str
    list: str
    tensor: Tensor
    dimension: int = 0
    layer: int | None = None
    group: str | None = None


@dataclass(frozen=True)
class Pool:
    """What one pool says of its regions, list by list, and all tensors it holds.

    name      for people, as of its class
    caches    what of them is moved whole, as far as the adapter knows
    shared    whether groups share memory on purpose, since a slot is of one group at a time
    breaches  what the adapter has found already, which makes all the regions doubtful
    """

    name: str
    claims: Sequence[Claim]
    tensors: Sequence[tuple[str, Tensor]] = ()
    caches: Sequence[Cache] = ()
    shared: bool = False
    breaches: Sequence[Breach] = ()

    def settled(self) -> "Pool":
        """Each claim with the tensor that holds it, as far as there is one."""
        claims = [c if c.tensor else replace(c, tensor=self._tensor_at(c)) for c in self.claims]
        return replace(self, claims=claims)

    @cached_property
    def around(self) -> Around[tuple[str, Tensor]]:
        """The tensors, by the bytes that they hold."""
        return Around((tensor, (name, tensor)) for name, tensor in self.tensors)

    def _tensor_at(self, claim: Claim) -> Tensor | None:
        """Of the tensors that hold its first byte: one that holds all of it, that begins where it
        does, the smallest."""
        return min(
            (tensor for _, tensor in self.around[claim.address]),
            key=lambda t: (t.end < claim.end, t.address != claim.address, t.reach()),
            default=None,
        )


def as_geometry(
    claims: Iterable[Claim], *, engine: str | None = None, process: str | None = None
) -> Geometry:
    """Names that come twice are numbered; what can be no region is left out."""
    return Geometry(tuple(region for _, region in as_regions(claims)), engine, process)


def as_regions(claims: Iterable[Claim]) -> Iterator[tuple[Claim, Region]]:
    seen: dict[str, int] = {}
    for claim in claims:
        seen[claim.name] = times = seen.get(claim.name, 0) + 1
        named = claim if times == 1 else replace(claim, name=f"{claim.name} #{times}")
        try:
            yield claim, named.region()
        except GeometryError:
            continue
