"""Prints what kvlint, armed by SGLang's own loader of plug-ins, has to say of each pool of the zoo:
as it is, and with each fault planted into what its released methods answer.

One object: pool -> method -> fault -> violations.
"""

import contextlib
import importlib
import json
import logging
from collections.abc import Callable
from typing import Any

import sglang_zoo as zoo
import torch
from sglang.srt.plugins import load_plugins

Said = tuple[list[int], list[int], list[int]]
MODULES = (
    "memory_pool",
    "swa_memory_pool",
    "deepseek_v4_memory_pool",
    "qsa_kv_pool",
    "unified_memory_pool",
    "dsa_cache_layer_split",
)


def right(said: Said, at: int) -> None:
    pass


def elements_of_one_byte(said: Said, at: int) -> None:
    said[2][at] //= 2


def length_of_a_longer_one(said: Said, at: int) -> None:
    said[1][at] += 3 * said[2][at]


def a_page_late(said: Said, at: int) -> None:
    said[0][at] += said[2][at]


def length_of_the_first_for_all(said: Said, at: int) -> None:
    said[1][:] = [said[1][0]] * len(said[1])


def item_length_of_the_first_for_all(said: Said, at: int) -> None:
    said[2][:] = [said[2][0]] * len(said[2])


def one_item_length_less(said: Said, at: int) -> None:
    del said[2][-1]


FAULTS: tuple[Callable[[Said, int], None], ...] = (
    right,
    elements_of_one_byte,
    length_of_a_longer_one,
    a_page_late,
    length_of_the_first_for_all,
    item_length_of_the_first_for_all,
    one_item_length_less,
)
planted: Callable[[Said, int], None] = right
depth = 0


def with_planted(original: Callable[..., Any]) -> Callable[..., Any]:
    """The released method, with the fault in what the outermost of them answers."""

    def answered(pool: Any) -> Any:
        global depth
        depth += 1
        try:
            answer = original(pool)
        finally:
            depth -= 1
        if not depth and answer[0]:
            # Entries without bytes are of layers without a buffer.
            filled = [at for at, length in enumerate(answer[1]) if length]
            planted(answer, filled[len(filled) // 2])
        return answer

    return answered


def plant() -> None:
    for name in MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            module = importlib.import_module(f"{zoo.CACHES}.{name}")
            for cls in list(vars(module).values()):
                if isinstance(cls, type) and cls.__module__ == module.__name__:
                    for method in [m for m in vars(cls) if m in zoo.answers(cls)]:
                        setattr(cls, method, with_planted(vars(cls)[method]))


def verdicts(pool: Any, method: str) -> dict[str, Any] | None:
    global planted
    from kvlint.runtime_checks import arming

    found, told = {}, arming._armed.policy.violations
    for planted in FAULTS:
        told.clear()
        try:
            getattr(pool, method)()
        except (AttributeError, NotImplementedError):
            return None
        found[planted.__name__] = [
            {
                name: record[name]
                for name in ("check", "code", "region", "region_name", "values", "message")
            }
            for record in told
        ]
    return found


def strided() -> dict[str, Any]:
    """The first layer's value in a tensor of which every other row is another's."""
    pools = {"mha": zoo.mha(), "mla": zoo.mla()}
    for name, buffers in (("mha", pools["mha"].v_buffer), ("mla", pools["mla"].kv_buffer)):
        shape, dtype = buffers[0].shape, buffers[0].dtype
        buffers[0] = torch.zeros((2 * shape[0], *shape[1:]), dtype=dtype)[::2]
        pools[name] = verdicts(pools[name], "get_contiguous_buf_infos")["right"]
    return pools


def main() -> None:
    logging.disable()
    plant()
    load_plugins()
    zoo.publish()
    found: dict[str, Any] = {}
    for name, make in zoo.ZOO.items():
        try:
            pool = make()
        except zoo.CANNOT as error:
            found[name] = f"{type(error).__name__}: {error}"
            continue
        methods = {method: verdicts(pool, method) for method in zoo.answers(type(pool))}
        found[name] = {method: one for method, one in methods.items() if one is not None}
    print(json.dumps({"pools": found, "strided": strided()}))


if __name__ == "__main__":
    main()
