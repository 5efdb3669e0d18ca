"""Small changes of Python source that a good test suite notices: what may be changed, and how.

Only code that runs is changed: bodies of functions and lambdas, not docstrings, annotations, error texts, or the
references and samples that tests are made of.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}  # fmt: skip
NOT_CODE = {"reference", "accurate_where", "amplitude", "__repr__", "__str__"}
"""Functions and attributes of classes that tests, or people, read."""

COMMUTATIVE = {
    "add", "and_", "array_equal", "equal", "isclose", "logical_and", "logical_or", "max", "maximum", "min",
    "minimum", "mul", "multiply", "not_equal", "or_", "xor", "zip",
}  # fmt: skip
"""Functions whose first two arguments may be exchanged without effect (of ``zip``: mostly by both sides)."""


SAFEGUARDS = {"strict", "encoding"}
"""Keywords without effect where all is well: ``zip`` of equally long lists, files where UTF-8 is the default."""


@dataclass(frozen=True)
class Mutation:
    """One change: the characters from ``start`` to ``end`` of a file become ``new``."""

    path: str
    line: int
    kind: str
    start: int
    end: int
    old: str
    new: str
    scope: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The changed source."""
        assert text[self.start : self.end] == self.old
        return text[: self.start] + self.new + text[self.end :]

    def difference(self) -> str:
        """What a reader sees: the line, before and after."""
        return f"{self.path}:{self.line} [{self.kind}] in {'.'.join(self.scope)}\n    - {self.old}\n    + {self.new}"


def mutations_of(path: Path, root: Path) -> list[Mutation]:
    """All changes of one file, in the order of its text."""
    text = path.read_text(encoding="utf-8")
    finder = _Finder(path.relative_to(root).as_posix(), text)
    finder.visit(ast.parse(text))
    return finder.found


class _Finder(ast.NodeVisitor):
    """Collects changes; ``scope`` names the classes and functions around a node."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.found: list[Mutation] = []
        self.scope: list[str] = []
        self.depth = 0  # of functions
        lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.lines = lines

    def _offset(self, line: int, column: int) -> int:
        # columns count bytes of UTF-8
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def _add(self, node: ast.expr | ast.stmt, kind: str, new: str) -> None:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno, node.end_col_offset)
        old = self.text[start:end]
        if self.depth and new != old:
            scope = tuple(self.scope)
            self.found.append(Mutation(self.path, node.lineno, kind, start, end, old, new, scope))

    # What is walked

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in NOT_CODE or node.name.endswith("samples"):
            return
        self.scope.append(node.name)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None and self.depth:
                self.visit(default)
        self.depth += 1
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        for statement in body:
            self.visit(statement)
        self.depth -= 1
        self.scope.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.depth += 1
        self.visit(node.body)
        self.depth -= 1

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        named = isinstance(target, ast.Name)
        if named and (target.id in NOT_CODE or target.id.endswith("samples")):  # type: ignore[attr-defined]
            return
        if named and not self.depth:
            self.scope.append(target.id)  # type: ignore[attr-defined]
        self.visit(node.value)
        if named and not self.depth:
            self.scope.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """What errors say is not changed."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Nor what is asserted."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts are for people."""

    # What is changed

    def visit_Compare(self, node: ast.Compare) -> None:
        other = COMPARED.get(type(node.ops[0]))
        if other is not None and len(node.ops) == 1:
            self._add(node, "comparison", ast.unparse(ast.Compare(node.left, [other()], node.comparators)))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = COMPUTED.get(type(node.op))
        text = isinstance(node.left, (ast.JoinedStr, ast.Constant)) and not _is_number(node.left)
        if other is not None and not text:
            self._add(node, "arithmetic", f"({ast.unparse(ast.BinOp(node.left, other(), node.right))})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add(node, "boolean", f"({ast.unparse(ast.BoolOp(other, node.values))})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.Not, ast.USub)):
            self._add(node, "dropped operator", f"({ast.unparse(node.operand)})")
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, "constant", str(not node.value))
        elif isinstance(node.value, (int, float)):
            self._add(node, "constant", repr(node.value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in SAFEGUARDS:
                rest = [other for other in node.keywords if other is not keyword]
                self._add(node, "dropped keyword", ast.unparse(ast.Call(node.func, node.args, rest)))
        first = node.args[:2]
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        plain = len(first) == 2 and not any(isinstance(one, ast.Starred) for one in first)
        if plain and name not in COMMUTATIVE and ast.dump(first[0]) != ast.dump(first[1]):
            changed = [first[1], first[0], *node.args[2:]]
            self._add(node, "swapped arguments", ast.unparse(ast.Call(node.func, changed, node.keywords)))
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in SAFEGUARDS:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if not isinstance(node.test, (ast.Compare, ast.BoolOp)) and _names(node.test) != {"TYPE_CHECKING"}:
            self._add(node.test, "swapped branches", f"(not {ast.unparse(node.test)})")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        texts = all(isinstance(one, ast.JoinedStr) or _is_text(one) for one in (node.body, node.orelse))
        if not texts:
            swapped = ast.IfExp(node.test, node.orelse, node.body)
            self._add(node, "swapped branches", f"({ast.unparse(swapped)})")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not _is_none(node.value):
            self._add(node, "returned nothing", "return None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and not _says_something(node.value):
            self._add(node, "dropped statement", "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        other = COMPUTED.get(type(node.op))
        if other is not None:
            self._add(node, "arithmetic", ast.unparse(ast.AugAssign(node.target, other(), node.value)))
        self.generic_visit(node)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float, complex))


def _says_something(node: ast.Call) -> bool:
    """Whether a text for people is all that a call is given, as that of an exception's base class is."""
    return bool(node.args) and all(isinstance(one, ast.JoinedStr) or _is_text(one) for one in node.args)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def all_mutations(root: Path, folders: tuple[str, ...]) -> Iterator[Mutation]:
    """The changes of every file of some folders of the package."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            if not path.name.startswith(("references", "samples", "examples", "docstrings")):
                yield from mutations_of(path, root)


def chosen(found: Sequence[Mutation], seed: int, count: int) -> list[Mutation]:
    """So many changes by a seed, of each kind as many as of any other as far as there are."""
    generator = random.Random(seed)
    kinds: dict[str, list[Mutation]] = {}
    for one in found:
        kinds.setdefault(one.kind, []).append(one)
    for one_kind in kinds.values():
        generator.shuffle(one_kind)
    picked: list[Mutation] = []
    while len(picked) < min(count, len(found)):
        for kind in sorted(kinds):
            if kinds[kind] and len(picked) < count:
                picked.append(kinds[kind].pop())
    return picked
