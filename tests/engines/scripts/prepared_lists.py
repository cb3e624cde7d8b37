"""Prints how many slots each buffer has, and then either who refused a list, or which pages of the
target hold bytes and which of these are the source's."""

import json

import torch
from deepseek_v4 import Side, pools, prepare, send

PAGES = [5, 6, 7, 100]


def outcome() -> dict[str, object]:
    source, target = Side("prefill", pools()), Side("decode", pools())
    source.agent.add_remote_agent(target.agent.get_agent_metadata())
    for buffer in source.buffers:
        buffer.copy_(torch.randint(1, 256, buffer.shape, dtype=torch.uint8))
    slots = [len(buffer) for buffer in source.buffers]
    try:
        prepare(source, target)
    except Exception as error:
        return {"slots": slots, "refused": f"{type(error).__name__}: {error}"}
    send(source, target, PAGES)
    return {
        "slots": slots,
        "written": [buffer.any(1).nonzero().flatten().tolist() for buffer in target.buffers],
        "right": [
            [page for page in PAGES if torch.equal(sent[page], come[page])]
            for sent, come in zip(source.buffers, target.buffers, strict=True)
        ],
    }


if __name__ == "__main__":
    print(json.dumps(outcome()))
