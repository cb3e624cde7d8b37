"""Buffers that a kernel's wrapper makes for itself, poisoned before anything is written there."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from kvlint.runtime_checks.comparing.layouts import poison

_MAKERS = ("aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty")
_STRIDED = "aten::new_empty_strided"


class Poisoned(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within it, memory that torch gives out unwritten is filled as `layouts.poison` says. Unlike
    torch's own setting for that, it changes no algorithm."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and func._schema.name in (*_MAKERS, _STRIDED):
            poison(made)
        return made
