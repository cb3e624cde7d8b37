"""The copies between SGLang's pools and their copies in host memory, checked like a transfer
before they are made: counts, ranges, whole pages, destinations that come twice, and once for each
pair of pools the bytes of a page, types, and where the host's buffers lie.

Indices in the device's memory are read only in modes that read bytes: to read them waits for the
device. What is read of indices on the host is read in every mode.
"""

import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from kvlint.runtime_checks.checks import COPY_LENGTHS, Breach, Place
from kvlint.runtime_checks.engines.sglang_host_buffers import Pair, name_of, pairs_of, rows_of
from kvlint.runtime_checks.engines.sglang_host_pages import HostPages
from kvlint.runtime_checks.hooking import Hooks
from kvlint.runtime_checks.pools.claims import Claim, Pool
from kvlint.runtime_checks.pools.copies import INTEGERS, Copy, End, faults
from kvlint.runtime_checks.pools.tensors import Tensor, is_tensor
from kvlint.runtime_checks.pools.watching import Pools
from kvlint.runtime_checks.regions import Integers
from kvlint.runtime_checks.stages.copying import Copies

_BACKUP: Final = "backup_from_device_all_layer"
_LOAD: Final = "load_to_device_per_layer"
_FREE: Final = ("free", "clear")
METHODS: Final = (_BACKUP, _LOAD, *_FREE)

_WHOLE: Final = ("direct", "kernel_ascend")
_RUNS: Final = ("page_first_direct", "page_first_kv_split", "page_unified")

_inside = threading.local()


# Host pools that were looked at, and for whom: once in a process that is armed.
_looked: "WeakKeyDictionary[Any, ref[Pools]]" = WeakKeyDictionary()


_pages: "WeakKeyDictionary[Pools, HostPages]" = WeakKeyDictionary()


def install(owner: type, label: str, hooks: Hooks, pools: Pools) -> None:
    pages = _pages_of(pools)
    for method in (_BACKUP, _LOAD):
        make = functools.partial(_copying, pools, pages, method)
        hooks.put(label, owner, method, make, optional=True)
    if pages.wanted and hasattr(owner, _BACKUP):
        for method in _FREE:
            make = functools.partial(_freeing, pools, pages)
            hooks.put(label, owner, method, make, optional=True)
        pages.watched.add(owner)


def _pages_of(pools: Pools) -> HostPages:
    """One for all classes of a process that is armed."""
    known = _pages.get(pools)
    if known is None:
        known = _pages[pools] = HostPages(Copies(pools.stages))
    return known


def _copying(
    pools: Pools, pages: HostPages, method: str, original: Callable[..., Any]
) -> Callable[..., Any]:
    def copied(
        host: Any,
        /,
        device_pool: Any,
        host_indices: Any,
        device_indices: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        # A class may ask its base class; a group of pools asks each of them.
        outer = getattr(_inside, "host", None)
        if outer is not host and pools.policy.armed("copies"):
            with pools.policy.contained("copies"):
                indices = host_indices, device_indices
                backend = _backend(method, args, kwargs)
                _check(pools, method, host, device_pool, indices, backend)
        _inside.host = host
        try:
            made = original(host, device_pool, host_indices, device_indices, *args, **kwargs)
        finally:
            _inside.host = outer
        if outer is not host and pages.wanted:
            with pools.policy.contained("copies"):
                indices = host_indices, device_indices
                _noted(pools, pages, method, host, device_pool, indices, (args, kwargs))
        return made

    return copied


def _noted(
    pools: Pools,
    pages: HostPages,
    method: str,
    host: Any,
    device_pool: Any,
    indices: tuple[Any, Any],
    others: tuple[Sequence[Any], Mapping[str, Any]],
) -> None:
    """What the copy has moved, for the ledger of stages."""
    if _resolves(host) or not all(map(is_tensor, indices)):
        return
    ours, theirs = (_numbers(one, pools.policy.mode.raises) for one in indices)
    if ours is None or theirs is None:
        return
    if method == _BACKUP:
        pages.written_back(host, device_pool, ours, theirs)
    else:
        args, kwargs = others
        layer = kwargs.get("layer_id", args[0] if args else None)
        if isinstance(layer, int):
            pages.loaded_back(host, device_pool, ours, theirs, layer)


def _freeing(pools: Pools, pages: HostPages, original: Callable[..., Any]) -> Callable[..., Any]:
    def freed(host: Any, /, *args: Any, **kwargs: Any) -> Any:
        with pools.policy.contained("copies"):
            given = next(iter((*args, *kwargs.values())), None)
            pages.freed(host, _numbers(given, reads_device=False) if is_tensor(given) else None)
        return original(host, *args, **kwargs)

    return freed


def _check(
    pools: Pools,
    method: str,
    host: Any,
    device_pool: Any,
    indices: tuple[Any, Any],
    backend: str,
) -> None:
    if not all(map(is_tensor, indices)):
        return
    what = method, backend, *map(_version, indices)
    if _same_as_before(what, pools, host, device_pool, *indices):
        return
    pairs, found = list(pairs_of(host, device_pool)), list[Breach]()
    looked = _looked.get(host)
    first = looked is None or looked() is not pools
    if first:
        pools.look(_host_pool(host, pairs), method, owner=host, at_once=True)
        found += _unlike(host, device_pool, pairs)
    reads_device = pools.policy.mode.raises
    found += faults(_copy(method, host, device_pool, indices, pairs, backend, reads_device))
    told = [pools.tell(breach, method) for breach in found]
    raised = next((violation for violation in told if violation is not None), None)
    if raised is not None:
        raise raised
    if first:
        _looked[host] = ref(pools)
    _inside.last = what, [ref(one) for one in (pools, host, device_pool, *indices)]


def _same_as_before(what: object, *given: Any) -> bool:
    """Layers are loaded one by one with the same indices: these are read once."""
    before, kept = getattr(_inside, "last", (None, ()))
    return before == what and all(a() is b for a, b in zip(kept, given, strict=True))


def _version(indices: Any) -> int:
    """Changes when the indices are changed in place, but for those of inference mode."""
    return 0 if indices.is_inference() else int(indices._version)


def _backend(method: str, args: Sequence[Any], kwargs: Any) -> str:
    at = 0 if method == _BACKUP else 1
    return str(kwargs.get("io_backend", args[at] if len(args) > at else ""))


def _host_pool(host: Any, pairs: Sequence[Pair]) -> Pool:
    """What the copies take the host's buffers to be: one page after another. Layouts that put
    several layers into a page have no such regions."""
    size, page = getattr(host, "size", None), getattr(host, "page_size", None)
    claims, tensors = [], []
    for pair in pairs:
        for layer, buffer in enumerate(pair.host):
            if not buffer.is_contiguous() or not buffer.numel():
                continue
            tensor = Tensor.of(buffer)
            rows = rows_of(tensor, size, page, pair.by_page)
            if rows is None:
                continue
            name = f"host layer {layer} {pair.role}"
            tensors.append((name, tensor))
            claims.append(
                Claim(
                    name=name,
                    list="kv",
                    address=tensor.address,
                    length=tensor.reach(),
                    item_length=rows * tensor.strides[0],
                    slot_rows=rows,
                    tensor=tensor,
                )
            )
    return Pool(name_of(host), claims, tensors)


def _unlike(host: Any, device_pool: Any, pairs: Sequence[Pair]) -> Iterator[Breach]:
    """The first layer of each thing whose pages are not of one size, or type, on both sides."""
    name, page = name_of(host), getattr(host, "page_size", None)
    if page != getattr(device_pool, "page_size", page) and not any(p.by_page for p in pairs):
        return
    for pair in pairs:
        if len(pair.host) != len(pair.device):
            continue
        for layer, (ours, theirs) in enumerate(zip(pair.host, pair.device, strict=True)):
            if not ours.numel() or not theirs.numel():
                continue
            here, there = Tensor.of(ours), Tensor.of(theirs)
            rows = rows_of(here, getattr(host, "size", None), page, pair.by_page)
            others = rows_of(there, getattr(device_pool, "size", None), page, pair.by_page)
            if rows is None or others is None:
                continue
            a, b = rows * here.reach(1), others * there.reach(1)
            if a != b or here.element_size != there.element_size:
                called = f"layer {layer} {pair.role}"
                yield Breach(
                    COPY_LENGTHS,
                    f"a page of {called} has {a} bytes of {here.dtype} in {name} and {b} of "
                    f"{there.dtype} on the device",
                    {f"bytes of a page in {name}": a, "on the device": b},
                    Place("local", layer, f"host {called}", layer),
                )
                break


def _copy(
    method: str,
    host: Any,
    device_pool: Any,
    indices: tuple[Any, Any],
    pairs: Sequence[Pair],
    backend: str,
    reads_device: bool,
) -> Copy:
    # Several ranks may share the tokens of a page, and indices are those of all of them.
    ranks = getattr(host, "dcp_size", 1)
    page = (getattr(host, "page_size", None) or 1) * ranks
    layout = getattr(host, "layout", "")
    # What resolves indices by itself, as pools that move their pages about do, has other ranges.
    own = _resolves(host)
    size = getattr(host, "size", None)
    entries = size * ranks if isinstance(size, int) and pairs and not own else None
    there = None if own else _device_entries(host, device_pool, pairs)
    ends = [
        _end(f"host {name_of(host)}", indices[0], entries, reads_device),
        _end("the device pool", indices[1], there and there * ranks, reads_device),
    ]
    tokens = any(p.tokens for p in pairs) and ends[0].count % page != 0
    runs = (any(p.by_page for p in pairs) and not tokens) or layout in _RUNS
    source, destination = reversed(ends) if method == _BACKUP else ends
    whole = not tokens and (runs or backend in _WHOLE)
    return Copy(source, destination, page, whole=whole and not own, runs=runs and not own)


def _end(name: str, indices: Any, entries: int | None, reads_device: bool) -> End:
    read = _numbers(indices, reads_device)
    return End(name, int(indices.numel()), _type(indices), entries, read)


def _resolves(host: Any) -> bool:
    """Whether it has its own idea of what indices are."""
    return "backup_from_device_all_layer_physical" in vars(type(host))


def _type(indices: Any) -> str:
    return str(indices.dtype).removeprefix("torch.")


def _numbers(indices: Any, reads_device: bool) -> Integers | None:
    """None where they are not integers, or not to be read where they are. What was read of a
    device is kept for the next question, which is about the same copy."""
    where = indices.device.type
    if not _type(indices).startswith(INTEGERS) or where == "meta":
        return None
    if where == "cpu":
        return _as_array(indices)
    if not reads_device:
        return None
    if indices.is_inference():
        return _as_array(indices)
    kept: list[tuple[ref[Any], int, Integers]] = getattr(_inside, "read", [])
    for known, version, read in kept:
        if known() is indices and version == _version(indices):
            return read
    read = _as_array(indices)
    _inside.read = [*kept[-3:], (ref(indices), _version(indices), read)]
    return read


def _as_array(indices: Any) -> Integers:
    read: Integers = indices.detach().reshape(-1).cpu().numpy().astype("int64", copy=False)
    return read


def _device_entries(host: Any, device_pool: Any, pairs: Sequence[Pair]) -> int | None:
    """The fewest that a buffer of the device has."""
    page, found = getattr(host, "page_size", None), []
    for pair in pairs:
        for buffer in pair.device:
            if not buffer.numel():
                continue
            rows = buffer.shape[0]
            if pair.by_page:
                each: int | None = 1
            else:
                size = getattr(device_pool, "size", None)
                each = rows_of(Tensor.of(buffer), size, page, False)
            if each is None or not isinstance(page, int):
                return None
            found.append(rows * page // each)
    return min(found, default=None)
