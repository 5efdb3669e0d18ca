"""The source of a program at the positions of its calls: statements, expressions and the names in them."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import math
import sys
from collections.abc import Collection, Iterator
from types import CodeType
from typing import Any, NamedTuple

from twofold.debug.sites import Site

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
ELEMENTWISE = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CALLERS = ("map", "filter", "sorted", "min", "max", "sum", "any", "all")
COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")
"""Names of functions that Python makes of expressions; later versions make none."""
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
Span = tuple[int, int, int, int]
_LONGEST_NAME = 40


class File:
    """A parsed file: expressions by their position, and what stands around each node."""

    def __init__(self, name: str) -> None:
        self.above: dict[ast.AST, ast.AST] = {}
        self.at: dict[Span, list[ast.AST]] = {}
        self.functions: dict[tuple[int, str], list[ast.AST]] = {}
        self.rebound: set[str] = set()  # variables that functions bind outside of themselves
        try:
            tree = ast.parse("".join(linecache.getlines(name)))
        except (SyntaxError, ValueError):
            return
        stack: list[ast.AST] = [tree]
        while stack:
            node = stack.pop()
            self._enter(node)
            for inner in ast.iter_child_nodes(node):
                self.above[inner] = node
                stack.append(inner)

    def _enter(self, node: Any) -> None:
        if isinstance(node, (ast.expr, ast.stmt)):
            span = (node.lineno, node.end_lineno or 0, node.col_offset, node.end_col_offset or 0)
            self.at.setdefault(span, []).append(node)
        method = node.func if isinstance(node, ast.Call) else None
        if isinstance(method, ast.Attribute) and method.value.end_lineno != method.end_lineno:
            # a method's call on a line of its own: Python has it begin at the method's name
            line, end = method.end_lineno or 0, method.end_col_offset or 0
            span = (line, node.end_lineno or 0, end - len(method.attr), node.end_col_offset or 0)
            self.at.setdefault(span, []).append(node)
        if isinstance(node, (ast.Nonlocal, ast.Global)):
            self.rebound.update(node.names)
        if isinstance(node, _FUNCTIONS):
            first = min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", ())]])
            self.functions.setdefault((first, getattr(node, "name", "<lambda>")), []).append(node)

    def around(self, node: ast.AST | None, kinds: Any) -> ast.AST | None:
        """The innermost node of ``kinds`` that ``node`` stands in, or is."""
        while node is not None and not isinstance(node, kinds):
            node = self.above.get(node)
        return node

    def handler_around(self, statement: ast.AST | None) -> ast.AST | None:
        """The innermost exception handler that a statement stands in, in its function."""
        found = self.around(statement, (ast.ExceptHandler, *_FUNCTIONS))
        return found if isinstance(found, ast.ExceptHandler) else None


@functools.lru_cache(maxsize=64)
def file_of(name: str) -> File:
    """The parsed file of a name, empty where there is no source."""
    linecache.checkcache(name)
    return File(name)


class Position(NamedTuple):
    """Where a call stands: its line and columns, the expression, and the statement around it."""

    line: int
    column: int
    end_line: int
    end_column: int
    expression: Any
    statement: Any


@functools.lru_cache(maxsize=4096)
def _position(code: CodeType, offset: int) -> Position:
    span = _span(code, offset)
    if span is None:
        line = _line(code, offset)
        return Position(line, 0, line, 0, None, None)
    first, last, column, end = span
    file = file_of(code.co_filename)
    found = file.at.get(span, [])
    node = next((one for one in found if isinstance(one, ast.expr)), found[0] if found else None)
    return Position(first, column, last, end, node, file.around(node, ast.stmt))


def position_of(site: Site) -> Position:
    """The position of a site."""
    return _position(site.code, site.offset)


def _span(code: CodeType, offset: int) -> Span | None:
    if not hasattr(code, "co_positions"):
        return None
    for k, (first, last, column, end) in enumerate(code.co_positions()):
        if 2 * k == offset:
            if None in (first, last, column, end):
                return None
            return (first or 0, last or 0, column or 0, end or 0)
    return None


def _line(code: CodeType, offset: int) -> int:
    if not hasattr(code, "co_positions"):
        return offset  # what stands for it before Python 3.11
    for begin, end, line in code.co_lines():
        if begin <= offset < end and line:
            return line
    return code.co_firstlineno


def loops_around(site: Site) -> list[ast.AST]:
    """The loops of the function that a site stands in, innermost first."""
    file = file_of(site.code.co_filename)
    node: Any = position_of(site).expression
    found: list[ast.AST] = [node] if isinstance(node, _LOOPS) else []  # a header that reads the next row
    ends = _FUNCTIONS if site.code.co_name not in COMPREHENSIONS else (*_FUNCTIONS, *ELEMENTWISE)
    while node is not None and not isinstance(node, ends):
        node, below = file.above.get(node), node
        # what the header of a `for` loop iterates over is computed once, and what stands in its `else`
        if isinstance(node, _LOOPS):
            once = (getattr(node, "iter", None), *node.orelse)
            found += [] if any(below is one for one in once) else [node]
    return found


def repetitions_around(site: Site) -> list[ast.AST]:
    """The loops around a site and the comprehensions that its function computes itself, innermost first."""
    if sys.version_info < (3, 12) or site.code.co_name in COMPREHENSIONS:
        return loops_around(site)
    above, loops = file_of(site.code.co_filename).above, loops_around(site)
    below: Any = None
    node: Any = position_of(site).expression
    found: list[ast.AST] = []
    while node is not None and not isinstance(node, _FUNCTIONS):
        if isinstance(node, ast.comprehension) and below is node.iter and above[node].generators[0] is node:
            node = above[node]  # what it goes over is computed once
        elif node in loops or isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)):
            found.append(node)
        node, below = above.get(node), node
    return found


def comprehension_around(site: Site) -> Any:
    """The list, set or dictionary for whose elements a site computes something, in the function of the site."""
    file = file_of(site.code.co_filename)
    node: Any = position_of(site).expression
    if site.code.co_name not in COMPREHENSIONS:  # whose code is that of a comprehension before Python 3.12
        if sys.version_info < (3, 12) or node is None:
            return None
        below, node = node, file.above.get(node)
        if isinstance(node, ast.comprehension) and below is node.iter:
            return None  # computed once
    found = file.around(node, (*ELEMENTWISE, *_FUNCTIONS))
    return found if isinstance(found, ELEMENTWISE) else None


def encloses(code: CodeType, block: ast.AST, statement: ast.AST | None) -> bool:
    """Whether a statement is ``block`` or stands in it."""
    file = file_of(code.co_filename)
    while statement is not None and statement is not block:
        statement = file.above.get(statement)
    return statement is not None


def _block(above: ast.AST, node: ast.AST) -> list[ast.stmt]:
    """The statements among which one stands in the statement around it, empty for what is no statement there."""
    blocks = [getattr(above, field, None) for field in ("body", "orelse", "finalbody")]
    return next((block for block in blocks if isinstance(block, list) and node in block), [])


def statements_after(code: CodeType, statement: ast.AST, loop: ast.AST) -> list[ast.stmt]:
    """Those that stand behind a statement in the blocks around it, up to the end of a loop, in order."""
    file = file_of(code.co_filename)
    found: list[ast.stmt] = []
    node: Any = statement
    while node is not loop and (above := file.above.get(node)) is not None:
        block = _block(above, node)
        found += block[block.index(node) + 1 :] if block else []
        node = above
    return found


def statements_between(code: CodeType, statement: Any, later: Any) -> list[ast.stmt]:
    """Those that stand behind a statement in the blocks that a function leaves on its way to a later one.

    Where it goes to a handler of exceptions, up to the ``raise`` that leads there.
    """
    file, found = file_of(code.co_filename), []
    node: Any = statement
    while (above := file.above.get(node)) is not None and not isinstance(node, _FUNCTIONS):
        block = _block(above, node)
        if any(encloses(code, one, later) for one in block):
            break
        behind = block[block.index(node) + 1 :] if block else []
        handlers = getattr(above, "handlers", ())
        if behind and any(encloses(code, one, later) for one in handlers):
            raised = next((k for k, one in enumerate(behind) if isinstance(one, ast.Raise)), None)
            behind = behind[:raised] if raised is not None else [_cut_short(behind)]
        found += behind
        if isinstance(above, _LOOPS) or encloses(code, above, later):
            break
        node = above
    return found


def _cut_short(statements: list[ast.stmt]) -> ast.stmt:
    """What stands for statements of which an exception may have ended the run."""
    return ast.copy_location(ast.Try(statements, [], [], []), statements[0])


def lines_of(code: CodeType, statement: Any, offset: int) -> list[tuple[int, int]]:
    """Where Python comes by in a statement of several lines, around an instruction of it: offsets and lines.

    Empty where the statement has one line, contains others, or does not run from its beginning to its end.
    """
    first, last = getattr(statement, "lineno", 0), getattr(statement, "end_lineno", 0)
    if first == last or not isinstance(statement, SIMPLE) or not hasattr(code, "co_positions"):
        return []
    if any(isinstance(one, (ast.IfExp, ast.BoolOp, *ELEMENTWISE)) for one in ast.walk(statement)):
        return []
    found: list[tuple[int, int]] = []
    for k, (line, _, _, _) in enumerate(code.co_positions()):
        if line is not None and first <= line <= last:
            if not found or found[-1][1] != line:
                found.append((2 * k, line))
        elif line is not None:
            if found and 2 * k > offset:
                break
            found = []
    return found


def statements_before(code: CodeType, statement: ast.AST) -> list[ast.stmt]:
    """Those that stand before a statement of a function in the blocks around it, in order."""
    file = file_of(code.co_filename)
    found: list[ast.stmt] = []
    node: Any = statement
    while (above := file.above.get(node)) is not None and not isinstance(node, _FUNCTIONS):
        block = _block(above, node)
        found = (block[: block.index(node)] if block else []) + found
        if isinstance(node, ast.ExceptHandler):
            found.insert(0, _cut_short(above.body))  # type: ignore[attr-defined]
        node = above
    return found


@functools.lru_cache(maxsize=4096)
def is_passed(loop: ast.AST, site: Site) -> bool:
    """Whether each iteration of a loop comes by a site, unless it is cut short."""
    return position_of(site).statement in getattr(loop, "body", ())


def is_known(site: Site) -> bool:
    """Whether the source of a site is at hand."""
    return position_of(site).expression is not None


def repeats(site: Site, around: Collection[ast.AST] = ()) -> bool:
    """Whether a function may come back to ``site`` by a loop of its own, other than those ``around``."""
    if site.code.co_name in COMPREHENSIONS or position_of(site).expression is None:
        return True
    return any(loop not in around for loop in repetitions_around(site))


def may_repeat(site: Site, later: Site) -> bool:
    """Whether a function may come from ``later`` back to ``site`` without being called again."""
    if site.code.co_name in COMPREHENSIONS or position_of(site).expression is None:
        return True
    around = repetitions_around(site)
    return any(loop in around for loop in repetitions_around(later))


def comes_before(site: Site, other: Site) -> bool:
    """Whether a function comes by one site before another, unless a loop takes it back.

    Python appends the code of exception handlers to that of the function.
    """
    file = file_of(site.code.co_filename)
    first, second = position_of(site).statement, position_of(other).statement
    if first is None or second is None or file.handler_around(first) is file.handler_around(second):
        return site.offset < other.offset
    return bool((first.lineno, first.col_offset) < (second.lineno, second.col_offset))


def function_of(code: CodeType) -> Any:
    """The definition of a function, or None."""
    found = file_of(code.co_filename).functions.get((code.co_firstlineno, code.co_name), [])
    return next((one for one in found if len(found) == 1 or made_by(one, code)), None)


@functools.lru_cache(maxsize=1024)
def name_of(code: CodeType) -> str:
    """What a function is called; a lambda by the variable it is assigned to, else by its text."""
    if code.co_name != "<lambda>" or (node := function_of(code)) is None:
        return code.co_name.strip("<>")
    above = file_of(code.co_filename).above[node]
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], (ast.Name, ast.Attribute)):
        return ast.unparse(above.targets[0])
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def made_by(node: Any, code: CodeType) -> bool:
    """Whether code is that of an expression, the only one of its kind that begins there."""
    if node.lineno != code.co_firstlineno:
        return False
    begin, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    positions = code.co_positions() if hasattr(code, "co_positions") else ()
    spans = [(first, column) for first, _, column, last in positions if first and last]
    return all(begin <= span < end for span in spans)


class Parameters(NamedTuple):
    """The names of the parameters of a function: those by position, the tuple of others, those by name alone."""

    positional: list[str]
    rest: str | None
    named: list[str]


def parameters_of(code: CodeType) -> Parameters:
    """The parameters of a function, without the object of a method."""
    count, named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    rest = code.co_varnames[named] if code.co_flags & inspect.CO_VARARGS else None
    positional = list(code.co_varnames[:count])[is_method(code) :]
    return Parameters(positional, rest, list(code.co_varnames[count:named]))


def is_method(code: CodeType) -> bool:
    """Whether a function is called with an object that its caller does not write down."""
    definition = function_of(code)
    above = file_of(code.co_filename).above.get(definition) if definition is not None else None
    plain = any(
        isinstance(one, ast.Name) and one.id == "staticmethod"
        for one in getattr(definition, "decorator_list", ())
    )
    return isinstance(above, ast.ClassDef) and not plain


def takes_context(code: CodeType) -> bool:
    """Whether a function is the ``forward`` of a custom function that gets a context before its arguments."""
    definition = function_of(code)
    owner = file_of(code.co_filename).above.get(definition) if definition is not None else None
    names = [getattr(one, "name", "") for one in getattr(owner, "body", ())]
    return isinstance(owner, ast.ClassDef) and not is_method(code) and "setup_context" not in names


def last_return(code: CodeType) -> Any:
    """The ``return`` at the end of a function, or None."""
    definition = function_of(code)
    body = getattr(definition, "body", None)
    if isinstance(body, list) and body and isinstance(body[-1], ast.Return):
        return body[-1]
    return None


def _own_nodes(definition: Any) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions in it, in the order of the source."""
    stack = list(getattr(definition, "body", ()))[::-1] if not isinstance(definition, ast.Lambda) else []
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            stack += list(ast.iter_child_nodes(node))[::-1]


def returns_after(code: CodeType, statement: Any) -> list[ast.Return]:
    """Those that a function may come to behind a statement of it, in the order of the source."""
    file, line = file_of(code.co_filename), getattr(statement, "lineno", 0)
    found = [
        one for one in _own_nodes(function_of(code)) if isinstance(one, ast.Return) and one.lineno > line
    ]
    return [one for one in found if statement is None or not _exclude(file, statement, one)]


def conditions_of(code: CodeType, statement: ast.AST, stood: ast.AST | None) -> list[tuple[ast.expr, bool]]:
    """The conditions on which a function comes to a statement from where it stands, with what they are then."""
    file, found = file_of(code.co_filename), []
    node: Any = statement
    while (above := file.above.get(node)) is not None and not isinstance(above, _FUNCTIONS):
        if isinstance(above, ast.If) and not encloses(code, above, stood):
            found.append((above.test, node in above.body))
        node = above
    return found


def yields_after(code: CodeType, statement: Any) -> list[ast.Yield]:
    """Where a function may yield in or behind a statement of it, repeating the loops that this stands in."""
    file = file_of(code.co_filename)
    found = [one for one in _own_nodes(function_of(code)) if isinstance(one, ast.Yield)]
    begin, end = getattr(statement, "lineno", 0), getattr(statement, "end_lineno", None) or 0
    later = [one for one in found if one.lineno >= begin and not _exclude(file, statement, one)]
    loop = file.around(file.above.get(statement), (*_LOOPS, *_FUNCTIONS)) if statement is not None else None
    inside = [one for one in later if loop is None or one.lineno <= (loop.end_lineno or end)]  # type: ignore[attr-defined]
    return (
        inside or [one for one in found if loop is not None and file.around(one, type(loop)) is loop] or later
    )


@functools.lru_cache(maxsize=4096)
def assigned_once(code: CodeType, name: str) -> Any:
    """What a function assigns to a variable where it does that once, of what does not change; else None."""
    definition = function_of(code)
    if definition is None or isinstance(definition, ast.Lambda):
        return None
    bound: dict[str, list[ast.AST]] = {}
    for one in ast.walk(definition):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            bound.setdefault(one.id, []).append(one)
        elif isinstance(one, ast.arg):
            bound.setdefault(one.arg, []).append(one)
    if len(bound.get(name, ())) != 1:
        return None
    statement = file_of(code.co_filename).above.get(bound[name][0])
    if not isinstance(statement, ast.Assign):
        return None
    read = [one.id for one in ast.walk(statement.value) if isinstance(one, ast.Name)]
    return statement.value if all(len(bound.get(one, ())) <= 1 for one in read) else None


def root_of(expression: Any, statement: Any) -> Any:
    """The expression that is evaluated where a function of Python calls one of the program."""
    if isinstance(expression, (ast.For, ast.AsyncFor)):
        return expression.iter
    if isinstance(expression, (ast.Tuple, ast.List)) and isinstance(expression.ctx, ast.Store):
        return getattr(statement, "value", expression)
    return expression


def calls_within(expression: Any, code: CodeType) -> float | None:
    """How often a function is called as an expression is evaluated once, None for one that calls it itself.

    Functions of Python call another for each element of what they are given.
    """
    nodes = list(ast.walk(expression)) if isinstance(expression, ast.Call) else []
    if code.co_flags & inspect.CO_GENERATOR and getattr(getattr(expression, "func", None), "id", "") == "zip":
        made = [
            one for one in expression.args if getattr(getattr(one, "func", None), "id", "") == code.co_name
        ]
        return len(made) or None
    if code.co_name == "<genexpr>":
        iterables = [one.generators[0].iter for one in nodes if isinstance(one, ast.GeneratorExp)]
    else:
        calls = [
            one for one in nodes if isinstance(one, ast.Call) and getattr(one.func, "id", "") in _CALLERS
        ]
        iterables = [one for call in calls for one in call.args if not isinstance(one, ast.Lambda)]
        if not calls or getattr(expression.func, "id", getattr(expression.func, "attr", "")) == code.co_name:
            return None
    lengths = [len(one.elts) for one in iterables if isinstance(one, (ast.Tuple, ast.List))]
    return min(lengths, default=math.inf) if iterables else None


def target_of(code: CodeType, node: ast.AST) -> Any:
    """What a value is assigned to, None where that is nothing or several."""
    statement = file_of(code.co_filename).above.get(node)
    is_one = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    return statement.targets[0] if is_one else None  # type: ignore[union-attr]


@functools.lru_cache(maxsize=4096)
def yields_between(site: Site, later: Site) -> bool:
    """Whether a generator function that goes on from one site to another comes by a ``yield`` for certain."""
    first, second = position_of(site).statement, position_of(later).statement
    if first is None or second is None or site.code.co_name in COMPREHENSIONS:
        return False
    if later.offset > site.offset:
        if is_yield(first) and first is not second:
            return True
        before = statements_before(site.code, second)
        return any(is_yield(one) for one in before if one.lineno > first.lineno)
    loop = next((one for one in loops_around(later) if one in loops_around(site)), None)
    if loop is None:
        return False
    inside = [one for one in statements_before(site.code, second) if encloses(site.code, loop, one)]
    return any(is_yield(one) for one in [first, *statements_after(site.code, first, loop), *inside])


def is_yield(statement: ast.AST) -> bool:
    """Whether a simple statement suspends a generator."""
    return isinstance(statement, SIMPLE) and any(isinstance(one, ast.Yield) for one in ast.walk(statement))


def rebound_names(code: CodeType) -> set[str]:
    """The variables that functions in the file of a function bind outside of themselves."""
    return file_of(code.co_filename).rebound


def nonlocal_names(code: CodeType) -> list[str]:
    """The variables of functions around that a function assigns to."""
    nodes = _own_nodes(function_of(code))
    return [name for one in nodes if isinstance(one, ast.Nonlocal) for name in one.names]


@functools.lru_cache(maxsize=4096)
def exclusive(site: Site, other: Site) -> bool:
    """Whether two sites of a function stand in branches of which one is taken."""
    first, second = position_of(site).expression, position_of(other).expression
    return (
        first is not None and second is not None and _exclude(file_of(site.code.co_filename), first, second)
    )


def _exclude(file: File, first: ast.AST, second: ast.AST) -> bool:
    below: dict[ast.AST, ast.AST] = {}
    node: ast.AST | None = first
    while node is not None and (above := file.above.get(node)) is not None:
        below[above] = node
        node = above
    node = second
    while (above := file.above.get(node)) is not None and above not in below:
        node = above
    if above is None:
        return False
    ways = [_branch(above, below[above]), _branch(above, node)]
    return None not in ways and ways[0] != ways[1]


def _branch(statement: Any, part: Any) -> Any:
    """Which branch of a statement or expression a part of it is, None for the others."""
    if isinstance(statement, ast.If):
        return "body" if part in statement.body else "orelse" if part in statement.orelse else None
    if isinstance(statement, ast.IfExp):
        return None if part is statement.test else part
    return part if isinstance(part, getattr(ast, "match_case", ())) else None
