"""What the code around a name shows where the name alone says little."""

from kvlint.analysis.link import Program
from kvlint.analysis.roles import is_address
from kvlint.analysis.terms import Call, Each, Term, last_name


def beside_addresses(program: Program, path: str, name: str) -> bool:
    """Whether a list of this name is walked together with addresses in the same file.

    `for addr, size in zip(addrs, sizes)` shows that `sizes` has one entry for each region.
    """
    key = (path, name)
    if key not in program.walked:
        program.walked[key] = False
        source = program.outline(path)
        for definition in source.definitions.values() if source else ():
            text = source.text(definition) if source else ""
            if name not in text or "zip(" not in text:
                continue
            body = program.body(definition)
            if body is not None and any(_together(loop.over, name) for loop in body.loops.values()):
                program.walked[key] = True
                break
    return program.walked[key]


def _together(over: Term, name: str) -> bool:
    match over:
        case Call(callee="enumerate", receiver=None, arguments=(inner, *_)):
            return _together(inner, name)
        case Call(callee="zip", receiver=None, arguments=lists):
            return any(last_name(one) == name for one in lists) and any(
                is_address(one) or is_address(Each(one, 0)) for one in lists
            )
    return False
