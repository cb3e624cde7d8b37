"""Tensors as bytes: gaps between rows, poison, and what else was written."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch
from torch import Tensor

_GAP: Final = 16
# Bytes around the memory of each input: what is written there is seen, and hurts nobody.
_GUARD: Final = 64 << 10
_GUARDED: Final = 0xFF
_WHOLE: Final = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Not-a-numbers that no calculation makes, where a format has more than one.
_MARKS: Final = {
    torch.float64: 0x7FF800000000BAD1,
    torch.float32: 0x7FC0BAD1,
    torch.float16: 0x7FDD,
    torch.bfloat16: 0x7FDD,
    torch.float8_e4m3fn: 0x7F,
    torch.float8_e5m2: 0x7F,
    torch.float8_e4m3fnuz: -0x80,
    torch.float8_e5m2fnuz: -0x80,
}


def mark(dtype: torch.dtype) -> int | None:
    """The bits that stand where nothing was written, as a signed number; of whole numbers the
    largest one; None for formats that are left as they are."""
    if dtype in _MARKS:
        return _MARKS[dtype]
    if dtype is torch.bool or dtype.is_floating_point or dtype.is_complex:
        return None
    return -1 if dtype in (torch.uint16, torch.uint32, torch.uint64) else torch.iinfo(dtype).max


def bits(tensor: Tensor) -> Tensor:
    return tensor.view(_WHOLE[tensor.element_size()])


def poison(tensor: Tensor) -> None:
    """Fill a buffer so that what is not written later is seen."""
    pattern = mark(tensor.dtype)
    if pattern is None:
        return
    if tensor.dtype is torch.uint8:
        tensor.fill_(pattern)
    else:
        bits(tensor).fill_(pattern)


def unwritten(tensor: Tensor) -> Tensor:
    """Where a tensor still holds poison; nowhere in formats that have none."""
    pattern = mark(tensor.dtype)
    if pattern is None:
        return torch.zeros_like(tensor, dtype=torch.bool)
    return tensor == pattern if tensor.dtype is torch.uint8 else bits(tensor) == pattern


def strided(tensor: Tensor, stride: str) -> Tensor:
    """The same numbers in memory of one's own, in one of `STRIDES`, poison in the gaps. What has
    one dimension begins inside its memory at most: kernels take it as one run."""
    size = tuple(tensor.shape)
    if stride == "contiguous" or not size:
        return tensor.contiguous()
    if len(size) == 1:
        if stride == "padded":
            return tensor.contiguous()
        view = _room((size[0] + 2 * _GAP,), tensor)[_GAP : _GAP + size[0]]
    elif stride == "padded":
        view = _room((*size[:-1], size[-1] + _GAP), tensor)[..., : size[-1]]
    else:
        view = _room((2 * size[0] + 1, *size[1:]), tensor)[1::2]
    return view.copy_(tensor)


def _room(size: tuple[int, ...], like: Tensor) -> Tensor:
    made = torch.zeros(size, dtype=like.dtype, device=like.device)
    poison(made)
    return made


def named(inputs: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Every tensor, those in lists and mappings by place."""
    for name, value in inputs.items():
        if isinstance(value, Tensor):
            yield name, value
        elif isinstance(value, Mapping):
            yield from named({f"{name}[{key!r}]": inner for key, inner in value.items()})
        elif isinstance(value, list | tuple):
            yield from named({f"{name}[{number}]": inner for number, inner in enumerate(value)})


def copied(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The same tensors over memory of their own, gaps included, with a guard around it that reads
    as NaN; what shares memory still does."""
    copies: dict[int, torch.UntypedStorage] = {}

    def copy(value: Any) -> Any:
        if isinstance(value, Tensor):
            key = value.untyped_storage().data_ptr()
            if key not in copies:
                copies[key] = _guarded(value)
            made = torch.empty(0, dtype=value.dtype, device=value.device)
            offset = value.storage_offset() + _GUARD // value.element_size()
            return made.set_(copies[key], offset, value.size(), value.stride())
        if isinstance(value, Mapping):
            return {key: copy(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(copy, value)) if type(value) in (list, tuple) else value
        return value

    return {name: copy(value) for name, value in inputs.items()}


def _guarded(tensor: Tensor) -> torch.UntypedStorage:
    held = _bytes(tensor)
    room = held.new_full((len(held) + 2 * _GUARD,), _GUARDED)
    room[_GUARD : _GUARD + len(held)] = held
    return room.untyped_storage()


def stray_write(before: Mapping[str, Any], after: Mapping[str, Any], meant: set[str]) -> str | None:
    """What was written besides the tensors named `meant`, in words; None for nothing. Both are
    `copied` of the same inputs."""
    held = list(zip(named(before), named(after), strict=True))
    for number, ((name, old), (_, new)) in enumerate(held):
        if any(_shared(new, earlier) for _, (_, earlier) in held[:number]):
            continue
        there = [(other, tensor) for (other, _), (_, tensor) in held if _shared(tensor, new)]
        changed = _bytes(old) != _bytes(new)
        for other, tensor in there:
            if other.partition("[")[0] in meant:
                _elements(changed, tensor).fill_(False)
        for other, tensor in there:
            hit = _elements(changed, tensor).any(dim=-1)
            if bool(hit.any()):
                at = hit.nonzero()[0].tolist()
                return f"it writes into its input {other!r}, at {at}"
        if bool(changed.any()):
            return _outside(name, new, int(changed.nonzero()[0]))
    return None


def _outside(name: str, tensor: Tensor, byte: int) -> str:
    width = tensor.element_size()
    begin = tensor.storage_offset() * width
    steps = zip(tensor.size(), tensor.stride(), strict=True)
    end = begin + (1 + sum((many - 1) * step for many, step in steps)) * width
    if byte < begin:
        where = f"{begin - byte} bytes before its begin"
    elif byte >= end:
        where = f"{byte - end} bytes after its end"
    else:
        where = f"in a gap between its rows, {byte - begin} bytes after its begin"
    return f"it writes outside of {name!r}, {where}"


def _shared(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _bytes(tensor: Tensor) -> Tensor:
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def _elements(of_bytes: Tensor, tensor: Tensor) -> Tensor:
    """Of something for each byte of a tensor's memory: (*size, bytes of an element)."""
    width = tensor.element_size()
    return of_bytes.as_strided(
        (*tensor.size(), width),
        (*(step * width for step in tensor.stride()), 1),
        tensor.storage_offset() * width,
    )
