"""Prints what kvlint, armed by SGLang's own loader of plug-ins, has to say of copies between pools
of the zoo and SGLang's own host pools of them: of right ones, and of each fault.

Released code: the pools on both sides, and the methods that back up and load. Set by hand: on a
machine without a device SGLang has no copy kernels, so that `transfer_kv_direct` is put in its
place here, in plain torch. Other layouts than layer by layer end where their kernel is missing.
"""

import importlib
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import sglang_zoo as zoo
import torch
from sglang.srt.plugins import load_plugins

HOSTS = {
    "mha": ("MHATokenToKVPoolHost", "pool_host.mha"),
    "mla": ("MLATokenToKVPoolHost", "pool_host.mla"),
    "dsv4": ("DeepSeekV4PagedHostPool", "memory_pool_host"),
}
NO_KERNEL = "no kernel"


def transfer_kv_direct(
    src_layers: Any, dst_layers: Any, src_indices: Any, dst_indices: Any, page_size: int
) -> None:
    for here, there in zip(src_layers, dst_layers, strict=True):
        there[dst_indices] = here[src_indices]


def host_of(name: str, pool: Any, layout: str) -> Any:
    cls_name, where = HOSTS[name]
    try:
        module = importlib.import_module(f"{zoo.CACHES}.{where}")
    except ModuleNotFoundError:
        module = importlib.import_module(f"{zoo.CACHES}.memory_pool_host")
    module.transfer_kv_direct = transfer_kv_direct
    cls = getattr(module, cls_name)
    if name == "dsv4":
        part = pool.c4_kv_pool
        return zoo.made(
            cls,
            pool_name="c4",
            device_buffers=part.kv_buffer,
            item_bytes=part.kv_buffer[0].shape[1],
            num_host_pages=2 * part.kv_buffer[0].shape[0],
            slot_page_size=part.page_size,
            layout=layout,
            pin_memory=False,
        )
    described = getattr(pool, "get_device_pool_infos", None)
    return zoo.made(
        cls,
        device_pool=pool,
        buffer_info=described()[0].buffer_info if described else None,
        device_capacity_tokens=pool.size,
        start_layer=0,
        end_layer=pool.layer_num - 1,
        target_layer_num=pool.layer_num,
        host_to_device_ratio=2.0,
        host_size=0,
        page_size=pool.page_size,
        layout=layout,
        pin_memory=False,
    )


def buffers(name: str, pool: Any) -> list[torch.Tensor]:
    if name == "dsv4":
        return list(pool.c4_kv_pool.kv_buffer)
    return list(pool.kv_buffer) if name == "mla" else [*pool.k_buffer, *pool.v_buffer]


def pages(page: int, *numbers: int) -> torch.Tensor:
    return torch.cat([torch.arange(page) + page * number for number in numbers])


def faults(host: Any, page: int, entries: int) -> Iterator[tuple[str, Any, Any]]:
    """Host and device indices of a backup, each with one fault."""
    here, there = pages(page, 3, 9), pages(page, 1, 2)
    yield "counts", here[:-1], there
    yield "host range", pages(page, 3, host.size // page), there
    yield "device range", here, pages(page, 1, entries // page)
    yield "twice", pages(page, 3, 3), there
    yield "part of a page", here + 1, there
    yield "torn page", here, torch.cat([there[: page - 1], there[-1:], there[page:]])


def said(copy: Callable[[], None]) -> str | None:
    """What kvlint raises; None where the copy is made, and where it lacks its kernel."""
    from kvlint.runtime_checks import Violation

    try:
        copy()
    except Violation as violation:
        return f"{violation.record['check']}: {violation}"
    except NameError as error:
        return NO_KERNEL if "transfer_kv" in str(error) else str(error)
    return None


def stages(name: str) -> dict[str, Any]:
    """What is said of host pages that change, that were given back, and of a copy that brings
    each page the first one's bytes; and how many pages were looked at."""
    make = getattr(zoo, name)
    pool = make()
    for buffer in buffers(name, pool):
        buffer.copy_(torch.randint(1, 99, buffer.shape).to(buffer.dtype))
    host = host_of(name, pool, "layer_first")
    part = pool.c4_kv_pool if name == "dsv4" else pool
    page = part.page_size
    here, there = host.alloc(2 * page), pages(page, 1, 2)

    def load() -> str | None:
        return said(
            lambda: [
                host.load_to_device_per_layer(part, here, there, layer, "direct")
                for layer in range(part.layer_num)
            ]
        )

    found: dict[str, Any] = {}
    found["backup"] = said(lambda: host.backup_from_device_all_layer(part, here, there, "direct"))
    found["load"] = load()
    from kvlint.runtime_checks import arming

    notes = arming._armed.stages.ledger.notes()[-4:]
    found["stages"] = [[note.stage.value, note.memory.pool, note.digests.size] for note in notes]
    refs = getattr(host, "v_data_refs", None) or host.data_refs
    rows = refs[-1].view(torch.uint8)
    last = int(here[-1])
    rows[last // page if name == "dsv4" else last].view(-1)[-1] += 1
    found["changed"] = load()
    host.free(here)
    here = host.alloc(2 * page)
    rows += 1
    found["given back"] = load()
    return found


def verdicts(name: str, layout: str) -> dict[str, Any]:
    make = getattr(zoo, name)
    pool = make()
    for buffer in buffers(name, pool):
        buffer.copy_(torch.randint(1, 99, buffer.shape).to(buffer.dtype))
    host, page = host_of(name, pool, layout), pool.page_size
    part = pool.c4_kv_pool if name == "dsv4" else pool
    page = part.page_size
    rows = buffers(name, pool)[0].shape[0]
    entries = rows * page if name == "dsv4" else rows
    here, there = pages(page, 3, 9), pages(page, 1, 2)
    found: dict[str, Any] = {"entries": entries, "host entries": host.size, "page": page}
    found["backup"] = said(lambda: host.backup_from_device_all_layer(part, here, there, "direct"))
    found["faults"] = {
        fault: said(lambda a=a, b=b: host.backup_from_device_all_layer(part, a, b, "direct"))
        for fault, a, b in faults(host, page, entries)
        if fault not in ("part of a page", "torn page") or layout != "layer_first" or name == "dsv4"
    }
    before = [buffer.clone() for buffer in buffers(name, pool)]
    for buffer in buffers(name, pool):
        buffer.zero_()
    loads = [
        said(lambda i=i: host.load_to_device_per_layer(part, here, there, i, "direct"))
        for i in range(part.layer_num)
    ]
    found["load"] = loads[0]
    if found["backup"] is None:
        chosen = [1, 2] if name == "dsv4" else there
        found["right"] = all(
            torch.equal(a[chosen], b[chosen])
            for a, b in zip(buffers(name, pool), before, strict=True)
        )
    return found


def main() -> None:
    logging.disable()
    load_plugins()
    zoo.publish()
    found = {
        f"{name} {layout}": verdicts(name, layout)
        for name in HOSTS
        for layout in ("layer_first", "page_first_direct")
    }
    from kvlint.runtime_checks import status

    now = status()
    hooks = {hook: state for hook, state in now["hooks"].items() if "Host" in hook}
    seen = {name: stages(name) for name in HOSTS}
    told = {"copies": found, "stages": seen, "hooks": hooks, "faults": status()["tool_errors"]}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
