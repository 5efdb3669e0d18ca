"""Tracebacks and notes of run-time errors: they end at the call that failed, with its operands and an excerpt.

Operands are named as in the source of the call, and are the locals of the last frame.
"""

from __future__ import annotations

import ast
import functools
import inspect
import keyword
import linecache
import textwrap
from collections.abc import Callable, Sequence
from importlib import import_module
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy

from twofold import _core
from twofold.errors import TwofoldError
from twofold.tracebacks import Position, ending_at, excerpt, globals_of, positions, user_frame

Tensor = _core.Tensor
_Error = TypeVar("_Error", bound=BaseException)
_FUNCTIONS = (FunctionType, BuiltinFunctionType, type(_core.operation_callable(None, -1, len)))
_MAX_LETTERS = 60  # of first values, and of the name of an operand
Span = tuple[int, int, int, int]
_MAX_CALLERS = 5  # in a note; the traceback has all
_CALLERS = ("functools", "_functools", "itertools")
"""Modules whose functions call what they are given: their arguments are not the operands of the call that fails."""
BY_USER = 1 << 31  # ``Provenance::kByUser`` of the core


def pass_of(location: tuple[int, int]) -> int:
    """The location of the backward pass that made a call, or 0; calls in the user's own ``backward`` the user made."""
    return 0 if location[1] & BY_USER else location[1]


def position(
    error: BaseException,
    location: tuple[int, int],
    operands: Sequence[Any] | None,
    parameters: Sequence[str] = (),
    inside: int = 0,
) -> BaseException:
    """Let the traceback of an error end at the call that failed.

    Args:
        error: The error of the call.
        location: Of the call, and of the backward pass that differentiates it, or 0; for a call in the user's own
            ``backward``, of the call that this differentiates, with ``BY_USER``.
        operands: Those of the call, or of what failed in its body; None if they, or one of them, are unknown.
        parameters: The names of the parameters of the operation.
        inside: The location of the line that failed in the body of the call, or 0.
    """
    forward, other = location
    chain = positions(inside or forward)
    if not chain:
        return error
    by_user, outer = bool(other & BY_USER), positions(other & ~BY_USER)
    named = name_operands(chain[0], operands or (), parameters, in_order=bool(inside) or by_user or not other)
    error.__traceback__ = ending_at([*chain, *outer], _locals(named))
    note(error, _shown(chain, outer, named, "the backward pass" + " of the call" * by_user))
    return error


def first_wrong(
    op: Any,
    attrs: tuple[Any, ...],
    operands: Sequence[Any] | None,
    location: tuple[int, int],
    is_wrong: Callable[[Any], bool] = lambda value: False,
) -> Any:
    """Search the bodies of a forward call for the first call that fails or returns a wrong value.

    Args:
        op: The operation of the call.
        attrs: Its attributes.
        operands: Its operands.
        location: Of the call, and of a backward pass or 0.
        is_wrong: Whether a value is wrong.

    Returns:
        The inner call; None if it is not found.
    """
    if operands is None or pass_of(location) or op is None:
        return None
    return import_module("twofold.debug.inner_calls").first_wrong(op, attrs, operands, location[0], is_wrong)


def differentiated_at(steps: Sequence[Any], failed: Any, location: int, line: int) -> Any:
    """The call at a line in a body whose gradient ``failed`` is a part of, as far as ``steps`` of the pass tell."""
    return import_module("twofold.debug.inner_calls").differentiated_at(steps, failed, location, line)


def operands_inside(
    op: Any, attrs: tuple[Any, ...], operands: Sequence[Any] | None, failed: Any, location: int, line: int
) -> Any:
    """The call at a line in a body whose gradient fails.

    Args:
        op: The operation that was differentiated.
        attrs: Its attributes.
        operands: Its operands.
        failed: The operation that failed.
        location: The location of the forward call.
        line: That of the line in the body.

    Returns:
        The inner call with the operands that are known; None if it is not found.
    """
    if operands is None or op is None or not line:
        return None
    inner_calls = import_module("twofold.debug.inner_calls")
    return inner_calls.operands_inside(op, attrs, operands, failed, location, line)


def describe_call(error: BaseException, operands: Sequence[Any], parameters: Sequence[str]) -> None:
    """Add a note with the source and operands of the call that is being recorded."""
    chain = positions(_core.declaring_location())
    if chain:
        named = name_operands(chain[0], operands, parameters, in_order=not _names_other_things(chain[0]))
        if _core.forced_location():  # a declared operation, whose frame has returned
            note(error, _shown(chain, (), named))
            error.__traceback__ = ending_at(chain, _locals(named))
        else:
            note(error, _shown(chain, (), _with_line(chain[0], named)))


def _names_other_things(position: Position) -> bool:
    """Whether the running line gives its call something that is no operand, such as a module."""
    frame, tree = user_frame(), _expression(position)
    if frame is None or frame.f_code is not position.code or not isinstance(tree, ast.Call):
        return False
    from twofold.runtime.line_values import may_be_operand, read

    scope = {**frame.f_globals, **frame.f_locals}
    return not all(may_be_operand(read(one, scope)) for one in tree.args)


def describe_line(error: _Error) -> _Error:
    """The error, with a note of the values that the user's line names where it ends there and has none."""
    frame = user_frame()
    if frame is None or getattr(error, "__notes__", None) or not _ends_at(error, frame):
        return error
    chain = positions(_core.declaring_location())
    named = _with_line(chain[0], ()) if chain else []
    if named:
        note(error, _shown(chain, (), named))
    return error


def _ends_at(error: BaseException, frame: FrameType) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame is frame


def _with_line(position: Position, named: Sequence[Named]) -> list[Named]:
    """Operands, and what else the running line names.

    That is all of the line if one of the operands has no name there, such as one computed in a call; else what is
    given to the call itself. An operand without a name that is an element of a collection is called so.
    """
    frame, tree = user_frame(), _expression(position)
    if frame is None or frame.f_code is not position.code or tree is None:
        return list(named)
    from twofold.runtime.line_values import element_of, named_in

    found = named_in(tree, frame)
    is_nameless = [one.text == one.parameter and isinstance(one.value, Tensor) for one in named]
    elements = [element_of(one.value, found) if new else None for one, new in zip(named, is_nameless)]
    if named and all(element or not new for element, new in zip(elements, is_nameless)):
        given = [*tree.args, *[one.value for one in tree.keywords]] if isinstance(tree, ast.Call) else []
        texts = list(map(ast.unparse, given))
        inside = [element.partition("[")[0] for element in elements if element]
        found = {text: value for text, value in found.items() if text in texts and text not in inside}
    named = [one._replace(text=element or one.text) for one, element in zip(named, elements)]
    texts = [one.text for one in named]
    return [*named, *[Named(text, text, value) for text, value in found.items() if text not in texts]]


def end_inside(error: BaseException, location: int) -> None:
    """Let the traceback end at a line, if the call that is being recorded called it."""
    outer = positions(_core.declaring_location())
    chain = positions(location)
    called = [(caller.code, caller.line) for caller in chain[1:]]
    if outer and (outer[0].code, outer[0].line) in called:
        error.__traceback__ = ending_at(chain, {})
        note(error, _shown(chain, (), ()))


def end_in(error: BaseException, function: Any, value: Any, used_at: int = 0) -> BaseException:
    """Let the traceback of an error end in the user's function that returned a wrong value.

    Args:
        error: The error.
        function: The function.
        value: The value; the traceback ends at the line of the function that made it, else at its last line.
        used_at: The location that the function was handed over at, whose line stands above.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return error
    chain = positions(_core.location_of(value)) if isinstance(value, Tensor) else []
    while chain and chain[0].code is not code:
        chain = chain[1:]
    if not chain:
        line = max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)
        text = linecache.getline(code.co_filename, line).rstrip().encode()
        chain = [Position(code, line, line, len(text) - len(text.lstrip()), len(text))]
    chain = [*chain[:1], *positions(used_at)]
    error.__traceback__ = ending_at(chain, {})
    note(error, _shown(chain, (), ()))
    return error


def wrong_gradient(
    gradient: Tensor | None, returned: Any, hook: Any, registered_at: int = 0
) -> BaseException:
    """The error for a hook that did not return a tensor of the type of the gradient."""
    found = f"{returned.type_}" if isinstance(returned, Tensor) else type(returned).__name__
    function, location = getattr(hook, "func", hook), getattr(hook, "registered_at", registered_at)
    given = "None" if gradient is None else f"a gradient of {gradient.type_}"
    where = f", registered at {_core.location_text(location)}" if location else ""
    what = f"register_hook: a hook was given {given} and returned {found}{where}"
    return end_in(RuntimeError(f"{what}. Return its like, or None."), function, returned, location)


def end_at(error: BaseException, location: int) -> BaseException:
    """Let the traceback of an error end at the line of a location."""
    chain = positions(location)
    if chain:
        error.__traceback__ = ending_at(chain, {})
        note(error, _shown(chain, (), ()))
        if isinstance(error, TwofoldError):
            error.placed = True
    return error


def note(error: BaseException, text: str) -> None:
    """Add a note to an error, as ``add_note`` of Python 3.11."""
    error.__notes__ = [*getattr(error, "__notes__", ()), text]


def _shown(
    chain: Sequence[Position],
    outer: Sequence[Position],
    named: Sequence[Named],
    title: str = "the backward pass",
) -> str:
    first, *callers = chain
    line = f"at {first.where} in {first.code.co_name}"
    line += "".join(f", called at {one.where} in {one.code.co_name}" for one in callers[:_MAX_CALLERS])
    if outer:
        line += f", in {title} at {outer[0].where}"
    source = excerpt(first)
    parts = [line, textwrap.indent(source, "    ")]
    for one in named:
        if isinstance(one.value, (bool, int, float)) and (
            one.text not in source or one.text == repr(one.value)
        ):
            continue  # a number that the line shows, or that is not the program's
        also = (
            ""
            if one.variable == one.text or isinstance(one.value, (bool, int, float))
            else f" ({one.variable})"
        )
        parts.append(f"  {one.text}{also}: {described_value(one.value)}")
    if outer and excerpt(outer[0]):
        parts += [title, textwrap.indent(excerpt(outer[0]), "    ")]
    return "\n".join(part for part in parts if part)


def described_value(value: Any) -> str:
    """The text of an operand: type, first values, and the line that made it."""
    if not isinstance(value, Tensor):
        from twofold.runtime.line_values import described_collection, has_numbers

        text = described_collection(value) if has_numbers(value) else repr(value)
        made = getattr(value, "_tensor", None) if isinstance(value, _core.Expression) else None
        return f"{text}, made at {made._where}" if made is not None and made._location else text
    text = f"{value.type_}"
    first = first_values(value)
    text += f" {first}" if first else ""
    made = value._location
    return f"{text}, made at {value._where}" if made else text


def first_values(tensor: Tensor) -> str:
    """The first values of a tensor on one line; empty if it is not computed."""
    if tensor._is_symbolic or not tensor._is_realised:
        return ""
    from twofold.runtime.line_values import first_of

    return first_of(tensor._read() if tensor.numel() else numpy.empty(0))


def name_operands(
    position: Position, operands: Sequence[Any], parameters: Sequence[str] = (), in_order: bool = True
) -> list[Named]:
    """Name operands as in the source of a call, else by parameters.

    An expression is matched with the value that was assigned to it, or that it made; the others are matched in order.

    Args:
        position: The source position of the call.
        operands: The operands.
        parameters: The names of the parameters of the operation.
        in_order: Whether the operands are those of the call, in order. They are not where it calls a module.
    """
    candidates, are_operands = _operands_of(position, parameters)
    in_order = in_order and are_operands
    texts = [one.text for one in candidates]
    made = {one.span: one.text for one in candidates}
    found: list[str | None] = [
        _made_by(value, position, made) or _assigned(value, position) for value in operands
    ]
    found = [name if name in texts else None for name in found]
    given = {one.keyword: one.text for one in candidates if one.keyword}
    for k, parameter in enumerate(parameters[: len(operands)] if are_operands else ()):
        found[k] = found[k] or next((given[one] for one in _keywords_of(parameter) if one in given), None)
    free = [text for text in texts if text not in found]
    open_positions = [k for k, name in enumerate(found) if name is None]
    if len(free) != len(open_positions):
        numbers = {one.text for one in candidates if one.is_number}
        free = [text for text in free if text not in numbers]
        open_positions = [k for k in open_positions if isinstance(operands[k], Tensor)]
    if in_order and len(free) == len(open_positions):
        constants = {one.text for one in candidates if one.is_number}
        for k, text in zip(open_positions, free):
            other = text in constants and not isinstance(operands[k], Tensor)
            found[k] = None if other and ast.literal_eval(text) != operands[k] else text
    named = []
    for k, (name, value) in enumerate(zip(found, operands)):
        parameter = parameters[k].replace(" ", "_") if k < len(parameters) else ""
        if value is not None and (name or parameter or isinstance(value, Tensor)):
            parameter = parameter or f"operand_{k}"
            named.append(Named(name or parameter, parameter, value))
    return named


class Named(NamedTuple):
    """An operand: its expression in the source, the name of the parameter, and its value."""

    text: str
    parameter: str
    value: Any

    @property
    def variable(self) -> str:
        """The name of the local variable: the expression if it is a name, else the parameter."""
        parts = self.text.split(".")
        is_name = all(part.isidentifier() and not keyword.iskeyword(part) for part in parts)
        return self.text if is_name else self.parameter


def _locals(named: Sequence[Named]) -> dict[str, Any]:
    """Local variables of operands; ``self.weight`` is an attribute of a namespace ``self``."""
    found: dict[str, Any] = {}
    for one in named:
        value = one.value
        first, *rest = one.variable.split(".")
        if not rest:
            found.setdefault(first, value)
            continue
        holder = found.setdefault(first, SimpleNamespace())
        for part in rest[:-1]:
            if isinstance(holder, SimpleNamespace):
                holder = vars(holder).setdefault(part, SimpleNamespace())
        if isinstance(holder, SimpleNamespace):
            setattr(holder, rest[-1], value)
    return found


class Candidate(NamedTuple):
    """An operand expression in the source of a call, its span, and the keyword that it is given by."""

    text: str
    is_number: bool
    span: Span
    keyword: str = ""


_KEYWORDS = {
    "input": ("logits", "predictions", "x", "inputs", "params", "tensor"),
    "target": ("labels", "targets"),
    "index": ("indices", "ids", "input"),
}
"""What functions call the parameters of operations that have other names there."""


def _keywords_of(parameter: str) -> tuple[str, ...]:
    """The keywords by which an operand may be given."""
    return (parameter, *_KEYWORDS.get(parameter, ()))


def _made_by(value: Any, position: Position, texts: dict[Span, str]) -> str | None:
    """The operand expression of a call whose evaluation made a value."""
    if not isinstance(value, Tensor) or not value._location:
        return None
    chain = positions(_core.location_of(value))
    here = [one for one in chain if one.code is position.code]
    found = [texts.get((one.line, one.column, one.end_line, one.end_column)) for one in here]
    return next((text for text in found if text), None)


def _assigned(value: Any, position: Position) -> str | None:
    """The variable to which a value was assigned, unless the call at ``position`` made it."""
    if not isinstance(value, Tensor) or not value._location:
        return None
    chain = positions(_core.location_of(value))
    if not chain or chain[0] == position:
        return None
    first = chain[0]
    loops = _statements(first.file).targets
    return _target(first) or loops.get((first.line, first.column, first.end_line, first.end_column))


class _Statements(NamedTuple):
    """Assignments of a file by their first line, and the variables of loops by the span of what they go over."""

    assignments: dict[int, list[ast.stmt]]
    targets: dict[Span, str]


@functools.lru_cache(maxsize=256)
def _statements(file: str) -> _Statements:
    found = _Statements({}, {})
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            found.assignments.setdefault(node.lineno, []).append(node)
        elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
            whole: list[Any] = [node.iter, node] if isinstance(node, ast.For) else [node.iter]
            for part in whole:  # Python counts the step of a loop as one or the other
                span = (part.lineno, part.col_offset, part.end_lineno, part.end_col_offset)
                found.targets[span] = node.target.id
    return found


def _target(position: Position) -> str | None:
    """The variable to which the result of a call is assigned, if that is all its statement does."""
    for statement in _statements(position.file).assignments.get(position.line, []):
        value: Any = getattr(statement, "value", None)
        whole = value is not None and (value.col_offset, value.end_col_offset) == (
            position.column,
            position.end_column,
        )
        if isinstance(statement, ast.AugAssign):
            whole = whole or statement.col_offset == position.column
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]  # type: ignore[attr-defined]
        if (
            whole
            and isinstance(value, ast.Call)
            and isinstance(_read(value.func, globals_of(position.file)), type)
        ):
            return None  # an object, which has made the value inside
        if whole and len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute)):
            return ast.unparse(targets[0])
    return None


def _read(tree: ast.AST, names: dict[str, Any]) -> Any:
    """What a name, or an attribute of a module, is; None for other expressions."""
    if isinstance(tree, ast.Attribute):
        holder = _read(tree.value, names)
        return getattr(holder, tree.attr, None) if isinstance(holder, ModuleType) else None
    return names.get(tree.id) if isinstance(tree, ast.Name) else None


def _operands_of(position: Position, parameters: Sequence[str]) -> tuple[list[Candidate], bool]:
    """The operand expressions of a call in order, and whether these are the operands of an operation.

    A keyword argument is one of them if it is a tensor parameter of the operation.
    """
    tree: Any = _written(position) or _expression(position)
    if tree is None:
        return [], False
    names = globals_of(position.file)
    found: list[Candidate] = []
    keywords = {one.value: one.arg or "" for one in ast.walk(tree) if isinstance(one, ast.keyword)}
    for part in _parts(tree, names, parameters):
        text = ast.unparse(part)
        if len(text) <= _MAX_LETTERS and not isinstance(part, (ast.Slice, ast.Dict)):
            is_number = isinstance(part, ast.Constant) or _is_negative(part)
            span = (part.lineno, part.col_offset, part.end_lineno, part.end_col_offset)
            found.append(Candidate(text, is_number, span, keywords.get(part, "")))
    return found, not isinstance(tree, ast.Call) or _is_operation(tree.func, names)


@functools.lru_cache(maxsize=256)
def _expression(position: Position) -> ast.AST | None:
    """Parse the source at a position, with the line numbers of the file."""
    source = position.source
    if not source:
        return None
    for text in (f"({source})", source):
        try:
            tree = ast.parse(textwrap.dedent(text)).body[0]
        except (SyntaxError, IndexError):
            continue
        found: Any = tree.value if isinstance(tree, ast.Expr) else tree
        for node in ast.walk(found):
            if isinstance(node, (ast.expr, ast.stmt)):
                _move(node, position, len(text) - len(source) > 0)
        return found
    return None


def _move(node: Any, position: Position, in_parentheses: bool) -> None:
    """Shift the position of a node that was parsed by itself to that in its file."""
    first = position.column - in_parentheses
    node.col_offset += first if node.lineno == 1 else 0
    node.end_col_offset += first if node.end_lineno == 1 else 0
    node.lineno += position.line - 1
    node.end_lineno += position.line - 1


def _written(position: Position) -> ast.stmt | None:
    """The subscript assignment whose target is at a position."""
    for statement in _statements(position.file).assignments.get(position.line, []):
        for target in getattr(statement, "targets", ()):
            if isinstance(target, ast.Subscript) and target.col_offset == position.column:
                return statement
    return None


def _is_operation(function: ast.expr, names: dict[str, Any]) -> bool:
    """Whether a call expression calls an operation: a function of a module, or a method of tensors."""
    if getattr(_read(function, names), "__module__", "") in _CALLERS:
        return False
    if isinstance(function, ast.Attribute):
        return _is_module(function.value, names) or hasattr(Tensor, function.attr)
    return isinstance(function, ast.Name) and isinstance(names.get(function.id), _FUNCTIONS)


def _is_negative(part: ast.AST) -> bool:
    return isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant)


def _parts(tree: Any, names: dict[str, Any], parameters: Sequence[str]) -> list[Any]:
    if isinstance(tree, ast.Assign) and isinstance(tree.targets[0], ast.Subscript):
        target = tree.targets[0]
        return [target.value, tree.value, *_flat(target.slice)]
    if isinstance(tree, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)):
        return _parts(tree.value, names, parameters)
    if isinstance(tree, ast.AugAssign):
        return [tree.target, tree.value]
    if isinstance(tree, ast.BinOp):
        return [tree.left, tree.right]
    if isinstance(tree, ast.UnaryOp):
        return [tree.operand]
    if isinstance(tree, ast.Compare):
        return [tree.left, *tree.comparators]
    if isinstance(tree, ast.Subscript):
        return [tree.value, *_flat(tree.slice)]
    if isinstance(tree, ast.Call):
        known = [keyword for parameter in parameters for keyword in _keywords_of(parameter)]
        named = [one.value for one in tree.keywords if not parameters or one.arg in known]
        given = [part for item in [*tree.args, *named] for part in _flat(item)]
        if isinstance(tree.func, ast.Attribute) and not _is_module(tree.func.value, names):
            return [tree.func.value, *given]
        return given
    return [tree]


def _flat(part: ast.AST) -> list[ast.AST]:
    if isinstance(part, (ast.Tuple, ast.List)):
        return [inner for item in part.elts for inner in _flat(item)]
    return [part]


def _is_module(part: ast.AST, names: dict[str, Any]) -> bool:
    while isinstance(part, ast.Attribute):
        part = part.value
    return isinstance(part, ast.Name) and isinstance(names.get(part.id), ModuleType)
