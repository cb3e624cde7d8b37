"""Pools of plain tensors, and objects that say of themselves what SGLang's pools say."""

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

from kvlint.runtime_checks.pools.claims import Claim, Pool
from kvlint.runtime_checks.pools.tensors import Tensor, is_tensor, tensors_in

Said = tuple[int, int, int]
"""Address, length and item length of a region, in bytes."""


class PoolError(ValueError):
    """What was given is no pool; the message is one line."""


def pool_of(
    given: Any,
    *,
    name: str = "pool",
    said: Mapping[str, Said] | Iterable[Said] | None = None,
    slot_rows: int = 1,
) -> Pool:
    """A pool of tensors.

    given      a tensor, or lists and mappings of tensors; with `said` any object that holds some
    name       names the list of its regions, and what has no name of its own
    said       what the transport is told of each region; without it each tensor is a region
    slot_rows  entries of the first dimension that one slot is

    Raises PoolError.
    """
    if slot_rows < 1:
        raise PoolError(f"a slot has 1 row or more, not {slot_rows}")
    if said is None and hasattr(given, "get_contiguous_buf_infos"):
        said = _as_said(given.get_contiguous_buf_infos())
        return Pool(type(given).__name__, _claims(said, name, None), tensors_in(given, _kin(given)))
    if said is not None:
        return Pool(name, _claims(said, name, slot_rows), tensors_in(given, _kin(given)))
    if not (is_tensor(given) or isinstance(given, (list, tuple, Mapping))):
        raise PoolError(
            f"{type(given).__name__} is no pool: give its tensors, as in "
            "guard_pool({'key': pool.keys})"
        )
    tensors = tensors_in([given] if is_tensor(given) else given)
    if not tensors:
        raise PoolError("there is no tensor in it")
    claims = [
        _whole(
            tensor,
            f"{name}{path}" if not isinstance(given, Mapping) else _spoken(path),
            name,
            slot_rows,
        )
        for path, tensor in tensors
    ]
    return Pool(name, claims, tensors)


def _whole(tensor: Tensor, called: str, name: str, slot_rows: int) -> Claim:
    """All of a tensor. What lies between its rows is another's, as the values between the keys."""
    row, moved = tensor.strides[0] if tensor.strides else tensor.element_size, tensor.reach(1)
    return Claim(
        name=called,
        list=f"kv.{name}",
        address=tensor.address,
        length=tensor.reach(),
        item_length=slot_rows * row,
        transfer_length=(slot_rows - 1) * row + moved if moved < row else None,
        slot_rows=slot_rows,
        tensor=tensor,
    )


def _spoken(path: str) -> str:
    """`['key'][3]` as "key 3"."""
    return " ".join(path.replace("[", " ").replace("]", " ").replace("'", "").split())


def _claims(
    said: Mapping[str, Said] | Iterable[Said], name: str, slot_rows: int | None
) -> list[Claim]:
    if isinstance(said, Mapping):
        named: Iterable[tuple[str, Sequence[int]]] = said.items()
    else:
        named = ((f"{name}[{at}]", one) for at, one in enumerate(said))
    claims = []
    for called, one in named:
        try:
            address, length, item_length = (index(value) for value in one)
        except (TypeError, ValueError):
            raise PoolError(
                f"{called}: address, length and item length are three integers"
            ) from None
        claims.append(
            Claim(
                name=called,
                list=f"kv.{name}",
                address=address,
                length=length,
                item_length=item_length,
                slot_rows=slot_rows,
            )
        )
    return claims


def _as_said(given: Any) -> list[Said]:
    """Of three lists: addresses, lengths, item lengths."""
    try:
        addresses, lengths, item_lengths = map(list, given)
    except (TypeError, ValueError):
        raise PoolError("its answer is not three lists") from None
    if not len(addresses) == len(lengths) == len(item_lengths):
        counts = f"{len(addresses)}, {len(lengths)} and {len(item_lengths)}"
        raise PoolError(f"its lists have {counts} entries")
    return list(zip(addresses, lengths, item_lengths, strict=True))


def _kin(given: object) -> tuple[str, ...]:
    """The package that an object's class comes from: what it holds of it is part of the pool."""
    package = type(given).__module__.partition(".")[0]
    return () if package == "builtins" else (package,)
