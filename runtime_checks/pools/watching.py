"""What is known of the pools of this process: looked at, told, and declared to the transport."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import finalize, ref

from kvlint.geometry import Geometry, Region
from kvlint.runtime_checks import declared
from kvlint.runtime_checks.asking import Ask
from kvlint.runtime_checks.checks import SLOT_LAYOUT, Breach
from kvlint.runtime_checks.policy import Policy, Site
from kvlint.runtime_checks.pools.checking import faults, registered_in_part
from kvlint.runtime_checks.pools.claims import Claim, Pool, as_geometry, as_regions
from kvlint.runtime_checks.pools.tensors import Gone
from kvlint.runtime_checks.regions import Regions
from kvlint.runtime_checks.settings import Settings
from kvlint.runtime_checks.stacks import Stack, here
from kvlint.runtime_checks.violations import Violation

if TYPE_CHECKING:
    from kvlint.runtime_checks.stages.noting import Stages

Registered = Iterable[tuple[str, int, int, int]]
Range = tuple[int, int]


class Pools:
    """What the adapters of engines talk to. What they say is judged by the policy.

    registered  what an agent of that name has registered: (kind, address, length, device)
    looked      how often a pool was looked at
    on_declared, on_folded  take the geometry of an agent, or pool, as it was declared, and as lists
                have shown it
    agent_of    name of the agent whose metadata these are, once they were loaded
    stages      the ledger of stages, where bytes are read
    changes     how often anything of `regions` has changed
    """

    def __init__(self, policy: Policy, settings: Settings) -> None:
        self.policy = policy
        self.registered: Callable[[str], Registered] = lambda _: ()
        self.agent_of: Callable[[bytes], str | None] = lambda _: None
        self.on_declared: Callable[[str, Geometry], None] = lambda _agent, _geometry: None
        self.on_folded: Callable[[str, Geometry], None] = lambda _agent, _geometry: None
        self.stages: Callable[[], Stages | None] = lambda: None
        self._settings = settings
        self._known: dict[int, Claim] = {}
        self._wrong: dict[Range, tuple[Claim, Violation]] = {}
        self._owned_by: dict[int, dict[int, Claim]] = {}
        self._agents: set[str] = set()
        self._asked: dict[int, tuple[ref[Any], Ask]] = {}
        self._owned: set[object] = set()
        self.looked = 0
        self.changes = 0

    def look(
        self,
        pool: Pool,
        call: str,
        *,
        owner: Any = None,
        at_once: bool = False,
        said_by: object = None,
    ) -> Sequence[Claim]:
        """Check what an engine says of a pool. Gives back the claims that nothing is wrong with.

        What is wrong is told now, and raised when a list over such a region is first used; at once
        where that is asked for here or by KVLINT_STRICT_PREPARE.

        call     the method that said it
        owner    the pool itself: what is known of its memory is forgotten when it is gone
        said_by  the pool's own function that has just returned with it, if it is known
        """
        stack = here(1).after(said_by)
        raised: Violation | None = None
        sound: list[Claim] = []
        with self.policy.contained("pools"):
            if not self.policy.armed("pools"):
                return ()
            settled = pool.settled()
            self.looked += 1
            self._count(call, stack, settled)
            self._remember(settled, owner)
            found = list(faults(settled))
            wrong = {id(claim) for claim, _ in found}
            sound = [claim for claim in settled.claims if id(claim) not in wrong]
            told: list[tuple[Sequence[Claim], Breach]] = [
                *((settled.claims, breach) for breach in settled.breaches),
                *(([claim], breach) for claim, breach in found),
            ]
            for claims, breach in told:
                violation = self.tell(breach, call, stack=stack)
                if violation is not None:
                    raised = raised or violation
                    self._wrong.update((_extent(one), (one, violation)) for one in claims)
        if raised is not None and (at_once or self._settings.strict_prepare):
            raise raised
        return sound

    def tell(
        self, breach: Breach, call: str, agent: str = "", stack: Stack | None = None
    ) -> Violation | None:
        """Record it, unless only geometry is captured; what to raise, where the mode raises."""
        if not self._settings.checks:
            return None
        return self.policy.judge(breach, [Site(call, stack or here(1))], agent=agent)

    def _count(self, call: str, stack: Stack, pool: Pool) -> None:
        if self._settings.checks:
            held = all(claim.tensor is not None for claim in pool.claims if claim.length)
            self.policy.called(call, stack, "", (SLOT_LAYOUT.name,) if held else ())

    def ask(self, indices: Any, asked: Ask) -> None:
        """These indices are made to select these slots, when they come to the transport as they
        are: the object itself, while it lives.

        asked  gives them when they are compared
        """
        number = id(indices)
        gone = lambda _: self._asked.pop(number, None)  # noqa: E731
        with suppress(TypeError):
            self._asked[number] = ref(indices, gone), asked

    def asked(self, indices: object) -> Ask | None:
        """What was meant by these indices, if an adapter knows."""
        known = self._asked.get(id(indices))
        return known[1] if known is not None and known[0]() is indices else None

    def known(self, address: int) -> Claim | None:
        """What a pool has said of the region that begins there."""
        known = self._known.get(address)
        return None if known is None or known.gone() else known

    def regions(self) -> list[tuple[Region, Gone]]:
        """All that the pools have said, each with whether its memory was given back."""
        claims = list(self._known.values())
        return [(region, claim.gone) for claim, region in as_regions(claims)]

    def raises_for(self, regions: Regions) -> Violation | None:
        """What was found wrong with memory that these regions touch."""
        if not self._wrong:
            return None
        for (begin, end), (claim, violation) in list(self._wrong.items()):
            touched = (regions.addresses < end) & (regions.ends > begin)
            if claim.tensor is None:
                # Memory of no tensor of its pool is likely another's.
                touched = regions.addresses == begin
            if bool(touched.any()) and not claim.gone():
                return violation
        return None

    def declare(
        self,
        agent: str,
        claims: Sequence[Claim],
        *,
        call: str,
        engine: str | None = None,
        process: str | None = None,
    ) -> None:
        """These are the regions of an agent of this process, each list in order: names, groups
        and bounds for the transport's checks."""
        with self.policy.contained("pools"):
            geometry, gone = _described(claims, engine, process)
            declared.declare(geometry, agent, gone)
            self._agents.add(agent)
            self.on_declared(agent, geometry)
            for breach in registered_in_part(geometry.regions, self.registered(agent)):
                self.tell(breach, call, agent)

    def declare_peer(self, agent: str, claims: Sequence[Claim]) -> None:
        """What an agent, here or elsewhere, has told of its regions."""
        with self.policy.contained("pools"):
            declared.declare(as_geometry(claims), agent)
            self._agents.add(agent)

    def declare_own(self, owner: object, claims: Sequence[Claim]) -> None:
        """Memory of this process, whichever agent moves it."""
        with self.policy.contained("pools"):
            geometry, gone = _described(claims)
            declared.declare_here(owner, geometry.regions, gone)
            self._owned.add(owner)
            self.on_declared(str(owner), geometry)

    def forget(self) -> None:
        """Nothing of what was declared here stands any longer."""
        for agent in self._agents:
            declared.forget_agent(agent)
        for owner in self._owned:
            declared.forget(owner)

    def _remember(self, pool: Pool, owner: Any) -> None:
        self.changes += 1
        for address, claim in list(self._known.items()):
            if claim.gone():
                self._known.pop(address, None)
                self._wrong.pop(_extent(claim), None)
        told = {claim.address: claim for claim in pool.claims if claim.length}
        self._known.update(told)
        for claim in told.values():
            self._wrong.pop(_extent(claim), None)
        if id(owner) not in self._owned_by:
            # What cannot be watched is known for good, as pools of a server are.
            with suppress(TypeError):
                finalize(owner, self._gone, id(owner)).atexit = False
                self._owned_by[id(owner)] = {}
        if id(owner) in self._owned_by:
            self._owned_by[id(owner)].update(told)

    def _gone(self, owner: int) -> None:
        self.changes += 1
        for address, claim in self._owned_by.pop(owner, {}).items():
            if self._known.get(address) is claim:
                del self._known[address]
                self._wrong.pop(_extent(claim), None)


def _described(
    claims: Sequence[Claim], engine: str | None = None, process: str | None = None
) -> tuple[Geometry, list[Gone]]:
    """The claims' regions, and of each whether its memory is gone."""
    regions = list(as_regions(claims))
    geometry = Geometry(tuple(region for _, region in regions), engine, process)
    return geometry, [claim.gone for claim, _ in regions]


def _extent(claim: Claim) -> Range:
    """The region's memory: what is past the end of its tensor is another's."""
    return claim.address, min(claim.end, claim.tensor.end) if claim.tensor else claim.end
