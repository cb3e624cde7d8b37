"""Which of Triton's methods are hooked, and in which modules: known without Triton."""

from typing import Final

COMPILED: Final = "triton.compiler.compiler"
INTERPRETED: Final = "triton.runtime.interpreter"
MODULES: Final = (COMPILED, INTERPRETED)
OF_TRITON: Final = frozenset(
    {"triton.CompiledKernel.launch_metadata", "triton.InterpretedFunction.run"}
)
