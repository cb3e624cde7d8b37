"""In Triton's way: each launch is looked at before it is made.

`CompiledKernel.launch_metadata` is called for every launch, whether by `kernel[grid](...)` or by a
compiled kernel itself, with the grid and all arguments, just before the launcher; what is raised
there ends the launch. So one method stands for all kernels, decorated before or after, and nobody's
own hooks are in the way. Under TRITON_INTERPRET=1 it is `InterpretedFunction.run`.
"""

import inspect
from types import ModuleType
from typing import Any
from weakref import ref

from kvlint.runtime_checks.hooking import Hooks, Method
from kvlint.runtime_checks.launches.facts import CONSTANT, Signature
from kvlint.runtime_checks.launches.hooked import COMPILED
from kvlint.runtime_checks.launches.kernels import KEPT, Kernel
from kvlint.runtime_checks.launches.watch import CHECK, Watch
from kvlint.runtime_checks.policy import Policy


def install(module: ModuleType, hooks: Hooks, watch: Watch, policy: Policy) -> None:
    if module.__name__ == COMPILED:
        make = Compiled(watch, policy).launch_metadata
        owner = getattr(module, "CompiledKernel", None)
        hooks.put("triton.CompiledKernel", owner, "launch_metadata", make)
    else:
        owner = getattr(module, "InterpretedFunction", None)
        hooks.put("triton.InterpretedFunction", owner, "run", Interpreted(watch, policy).run)


class Compiled:
    def __init__(self, watch: Watch, policy: Policy) -> None:
        self._watch = watch
        self._policy = policy
        self._known: dict[int, tuple[ref[Any], Kernel]] = {}

    def launch_metadata(self, original: Method) -> Method:
        known, look, policy = self._known, self._watch.look, self._policy

        def launch_metadata(compiled: Any, grid: Any, stream: Any, /, *args: Any) -> Any:
            found = known.get(id(compiled))
            kernel = found[1] if found is not None else None
            if kernel is None and policy.armed(CHECK):
                with policy.contained(CHECK):
                    kernel = self._met(compiled)
            if kernel is not None:
                look(kernel, grid, args, stream)
            return original(compiled, grid, stream, *args)

        return launch_metadata

    def _met(self, compiled: Any) -> Kernel:
        number = id(compiled)
        gone = lambda _: self._known.pop(number, None)  # noqa: E731
        kernel = self._watch.meet(_kernel_of(compiled))
        self._known[number] = ref(compiled, gone), kernel
        return kernel


def _kernel_of(compiled: Any) -> Kernel:
    source = compiled.src
    function = getattr(source, "fn", None)
    if function is None:
        # From text of an intermediate language: nothing of Python's to read.
        return Kernel(None, Signature((), {}), str(compiled.name))
    names = list(function.arg_names)
    constants = {
        names[path[0]]: value
        for path, value in source.constants.items()
        if isinstance(path, tuple) and len(path) == 1
    }
    return Kernel(function, Signature(names, dict(source.signature), constants))


class Interpreted:
    def __init__(self, watch: Watch, policy: Policy) -> None:
        self._watch = watch
        self._policy = policy
        self._known: dict[object, Kernel] = {}

    def run(self, original: Method) -> Method:
        def run(function: Any, /, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            def sized(bound: Any) -> Any:
                """The grid is asked for where the interpreter asks for it, once."""
                sizes = grid(bound) if callable(grid) else grid
                self._look(function, sizes, args, kwargs)
                return sizes

            checked = grid if warmup else sized
            return original(function, *args, grid=checked, warmup=warmup, **kwargs)

        return run

    def _look(self, function: Any, grid: Any, args: Any, kwargs: Any) -> None:
        kernel, values = None, ()
        if self._policy.armed(CHECK):
            with self._policy.contained(CHECK):
                kernel, values = self._met(function, args, kwargs)
        if kernel is not None:
            self._watch.look(kernel, tuple(grid), values)

    def _met(self, function: Any, args: Any, kwargs: Any) -> tuple[Kernel, tuple[Any, ...]]:
        names = list(function.arg_names)
        named = {name: value for name, value in kwargs.items() if name in names}
        bound = inspect.getcallargs(function.fn, *args, **named)
        values = tuple(bound[name] for name in names)
        notes = inspect.get_annotations(function.fn)
        types = {name: _type(value, notes.get(name)) for name, value in bound.items()}
        constants = {name: bound[name] for name in names if types[name] == CONSTANT}
        key = (function.fn, tuple(types.values()), repr(constants))
        kernel = self._known.get(key)
        if kernel is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            signature = Signature(names, types, constants)
            kernel = self._watch.meet(Kernel(function, signature, compiled=False))
            self._known[key] = kernel
        return kernel, values


def _type(value: Any, note: Any) -> str:
    """As Triton would have compiled it."""
    text = note if isinstance(note, str) else getattr(note, "__name__", "") or str(note)
    if "constexpr" in text or value is None:
        return CONSTANT
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        wide = "int64" in text or not -(1 << 31) <= value < 1 << 31
        return "i64" if wide else "i32"
    if isinstance(value, float):
        return "fp32"
    if hasattr(value, "data_ptr"):
        return "*" + str(getattr(value, "dtype", "")).removeprefix("torch.")
    return ""
