"""Which statements nest too deep to be read on.

`ast` reads 3,000 nested `lambda`, `not` or `x if y else ...`; libcst takes 1.5 GB and 20 seconds
for them, and walks over what they mean come to the end of Python's stack.
"""

import ast

# Levels of an expression. The deepest one in sglang 0.5.23 and vllm 0.33.0 has 20.
MAX_DEPTH = 100
# Characters that libcst is given at once: it takes up to a kilobyte for each. The longest
# function in these trees has 200,000.
MAX_TEXT = 1 << 18


# What makes a level is one of these signs or words, so few of them need no walk.
_SIGNS = str.maketrans("", "", "([{.+-*/%~&|^@<>=!")
_WORDS = ("not", "lambda", "else", "await", "yield", "in", "is")


def nests_too_deep(statement: ast.stmt, lines: list[str]) -> bool:
    """Whether an expression of the statement, blocks in it left out, has over `MAX_DEPTH` levels.

    `lines`: of the file.
    """
    first, last = statement.lineno - 1, statement.end_lineno or statement.lineno
    block = getattr(statement, "body", None)
    if block:
        last = block[0].lineno
        decorators = getattr(statement, "decorator_list", None)
        if decorators:
            first = decorators[0].lineno - 1
    text = lines[first] if last - first == 1 else "".join(lines[first:last])
    if len(text) <= MAX_DEPTH:
        return False
    levels = len(text) - len(text.translate(_SIGNS))
    if levels <= MAX_DEPTH:
        levels += sum(map(text.count, _WORDS))
    return levels > MAX_DEPTH and _depth_over(statement, MAX_DEPTH)


def _depth_over(statement: ast.stmt, most: int) -> bool:
    level = [node for node in ast.iter_child_nodes(statement) if not isinstance(node, _BLOCKS)]
    for _ in range(most + 1):
        if not level:
            return False
        level = [
            inner
            for node in level
            for inner in ast.iter_child_nodes(node)
            if not isinstance(inner, ast.stmt)
        ]
    return bool(level)


_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)
