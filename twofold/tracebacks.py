"""Tracebacks that end at the user's line: frames for calls that run long after the line that made them.

An operation runs when a value is asked for, so the frame of its line may be gone by then. A frame that stands for it
is made of a small function with the file, the name and the line of the user's, whose arguments are the operands by the
names that they have there, and which raises at the columns of the call. ``pdb.post_mortem`` and printed tracebacks take
it as any other frame.

Errors that come up in the package itself end at the user's line, too: every public function and method is a callable of
the core around the Python function, the boundary between the user's code and the package. It adds a few nanoseconds to
a call; when an error comes through, the user's line is appended to its traceback. The package itself mostly calls the
functions behind the boundary.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import inspect
import linecache
import os
import sys
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, NamedTuple

import numpy

from twofold import _core

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = os.path.join(_STANDARD, "site-packages") + os.sep
_NUMPY = os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep
_MOST_LINES = 6  # of an expression in an excerpt


class Position(NamedTuple):
    """Where a call stands in the code of the user; columns are offsets into the UTF-8 of their lines."""

    code: CodeType
    line: int
    end_line: int
    column: int
    end_column: int

    @property
    def file(self) -> str:
        """The file of the code."""
        return self.code.co_filename

    @property
    def where(self) -> str:
        """``file.py:12``, as in messages."""
        return f"{os.path.basename(self.file)}:{self.line}"

    @property
    def source(self) -> str:
        """The text of the expression; empty where the file cannot be read."""
        lines = [linecache.getline(self.file, k).encode() for k in range(self.line, self.end_line + 1)]
        if not lines or not lines[0]:
            return ""
        lines[-1] = lines[-1][: self.end_column]
        lines[0] = lines[0][self.column :]
        return b"".join(lines).decode(errors="replace")


def positions(location: int) -> list[Position]:
    """The call at a location of the core and the calls that led there, innermost first.

    What runs the blocks of context managers is left out.
    """
    found = _core.location_codes(location)
    return [_position(code, offset) for code, offset in found if code.co_filename != contextlib.__file__]


def _position(code: CodeType, offset: int) -> Position:
    nothing = (None, None, None, None)
    if hasattr(code, "co_positions"):
        found, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None), nothing)
    else:
        found, end_line, column, end_column = (offset, *nothing[1:])
    line = found or code.co_firstlineno
    if end_line is None or column is None or end_column is None:
        text = linecache.getline(code.co_filename, line).rstrip().encode()
        return Position(code, line, line, len(text) - len(text.lstrip()), len(text))
    return Position(code, line, end_line, column, end_column)


def excerpt(position: Position) -> str:
    """The lines of a call with carets under its columns; empty where the file cannot be read."""
    found = []
    for line in range(position.line, min(position.end_line, position.line + _MOST_LINES - 1) + 1):
        text = linecache.getline(position.file, line).rstrip().encode()
        first = position.column if line == position.line else len(text) - len(text.lstrip())
        last = position.end_column if line == position.end_line else len(text)
        indent = len(text) - len(text.lstrip())
        shown, before = text[indent:].decode(errors="replace"), text[indent:first].decode(errors="replace")
        width = len(text[first:last].decode(errors="replace"))
        if shown:
            found += [shown, " " * len(before) + "^" * width]
    return "\n".join(found)


def serves_the_package(file: str) -> bool:
    """Whether code of a file may run below the package without being the user's: of Python, or of NumPy.

    What NumPy has compiled from Cython names its source without a folder of this machine.
    """
    if file.startswith((_NUMPY, "<frozen ", "<__array_function__")) or file.endswith(
        (".pyx", ".pxd", ".pxi")
    ):
        return True
    return file.startswith(_STANDARD) and not file.startswith(_INSTALLED)


def user_frame() -> FrameType | None:
    """The innermost frame of the user's code that is running in this thread."""
    frame: FrameType | None = sys._getframe(1)
    inside = True  # or below the package, in what it calls
    while frame is not None:
        file = frame.f_code.co_filename
        package = file.startswith(_PACKAGE)
        if not package and not (inside and serves_the_package(file)):
            return frame
        inside = inside or package
        frame = frame.f_back
    return None


def warn_user(message: str) -> None:
    """Give a UserWarning at the line of the user's code that is running."""
    frame = user_frame()
    if frame is None:
        warnings.warn(message, stacklevel=3)
        return
    seen = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno, registry=seen)


def ending_here() -> TracebackType | None:
    """A traceback whose only frame is the line that is running, or the line that declarations are placed at."""
    forced = _core.forced_location()
    if forced:
        return ending_at(positions(forced), {})
    frame = user_frame()
    return None if frame is None else TracebackType(None, frame, frame.f_lasti, frame.f_lineno)


def end_at_user(error: BaseException) -> None:
    """Let the traceback of an error that leaves the package end at the user's line that called it.

    The frames of the package stay, above that line. An error that the user's code raised, called by the package, ends
    there already. What the line names is a note of the error, unless it has one, or is about an attribute, which
    programs ask for all the time.
    """
    if isinstance(error, (StopIteration, StopAsyncIteration)):
        return
    inside = ends_inside(error)
    if inside:
        appended(error.__traceback__, _called_back(error.__traceback__) or ending_here())
    described = hasattr(error, "__notes__") or isinstance(error, AttributeError)
    if (inside or hasattr(error, "located")) and not described:
        import_module("twofold.runtime.failures").describe_line(error)


def _called_back(trace: TracebackType | None) -> TracebackType | None:
    """A traceback whose only frame is the last line of the user's code below the package, such as in a callback."""
    found, inside = None, True
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        package = file.startswith(_PACKAGE)
        if not package and not (inside and serves_the_package(file)):
            found = trace
        inside = package or (inside and serves_the_package(file))
        trace = trace.tb_next
    return None if found is None else TracebackType(None, found.tb_frame, found.tb_lasti, found.tb_lineno)


def ends_in_callback(error: BaseException) -> bool:
    """Whether the traceback of an error ends in a function of the program that was called from here."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and trace is not None and frame is not trace.tb_frame:
        frame = frame.f_back
    return frame is None and not ends_inside(error)


def ends_inside(error: BaseException) -> bool:
    """Whether the traceback of an error ends in the package, or in what the package calls."""
    inside, trace = False, error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        inside = file.startswith(_PACKAGE) or (inside and serves_the_package(file))
        trace = trace.tb_next
    return inside


def ending_at(chain: Sequence[Position], values: Mapping[str, Any]) -> TracebackType | None:
    """A traceback of calls, given innermost first; ``values`` are the locals of the innermost."""
    made: TracebackType | None = None
    for number, position in enumerate(chain):
        part = _raised(position, values if number == 0 else {})
        made = TracebackType(made, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return made


def appended(first: TracebackType | None, then: TracebackType | None) -> TracebackType | None:
    """One traceback behind the other; the first one is changed."""
    last = first
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return then
    last.tb_next = then
    return first


_module_of: dict[str, str] = {}
"""By file: the name of the module that it became."""


def globals_of(file: str) -> dict[str, Any]:
    """The names of the module that a file became; a dictionary of its own where there is none."""
    module = sys.modules.get(_module_of.get(file, ""))
    if getattr(module, "__file__", None) == file:
        return vars(module)
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == file:
            _module_of[file] = name
            return vars(module)
    return {"__name__": "unknown", "__file__": file}


def _raised(position: Position, values: Mapping[str, Any]) -> TracebackType:
    """What the frame that stands for a call leaves behind when it raises."""
    # The one value of the language that cannot be raised: no name is needed, which the user might have rebound.
    wrong: ast.stmt = ast.Raise(exc=ast.Constant(value=None), cause=None)
    first = min(position.code.co_firstlineno or position.line, position.line)
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(arg=name) for name in values],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    made = ast.FunctionDef(name="call", args=arguments, body=[wrong], decorator_list=[])
    if sys.version_info >= (3, 12):
        made.type_params = []
    for node in ast.walk(made):
        if isinstance(node, (ast.stmt, ast.expr, ast.arg)):
            node.lineno = node.end_lineno = first
            node.col_offset = node.end_col_offset = 0
    for inner in ast.walk(wrong):
        if isinstance(inner, (ast.stmt, ast.expr)):
            inner.lineno, inner.end_lineno = position.line, position.end_line
            inner.col_offset, inner.end_col_offset = position.column, position.end_column
    module = compile(ast.Module(body=[made], type_ignores=[]), position.file, "exec", dont_inherit=True)
    code = next(item for item in module.co_consts if isinstance(item, CodeType))
    names: dict[str, Any] = {"co_name": position.code.co_name}
    if sys.version_info >= (3, 11):
        names["co_qualname"] = position.code.co_qualname
    function = FunctionType(code.replace(**names), globals_of(position.file))
    try:
        _core.call_untraced(function, *values.values())  # a debugger would stop there
    except TypeError as error:
        assert error.__traceback__ is not None and error.__traceback__.tb_next is not None
        return error.__traceback__.tb_next
    raise AssertionError("a frame that raises did not")


UNWORDED: weakref.WeakSet[Any] = weakref.WeakSet()
"""Functions behind a boundary, whose errors keep their class and message."""

_Operation: Any = type(_core.operation_callable(None, -1, len))
_LIBRARY = -2
"""The number of operands of a function that no class of an argument handles."""
_INSIDE = (
    (
        "__class_getitem__",
        "__del__",
        "__eq__",
        "__getattribute__",
        "__getnewargs__",
        "__getstate__",
        "__hash__",
    )
    + ("__init_subclass__", "__new__", "__reduce__", "__reduce_ex__", "__repr__", "__setstate__", "__str__")
    + ("__subclasshook__", "forward")
)
"""Methods that no user's line calls directly, or that a boundary stands before."""

_known: dict[Any, Any] = {}
"""Boundaries by the functions behind them, and the classes and modules that are done."""


def guard_namespace(names: dict[str, Any]) -> None:
    """Put the boundary before every public function and class of a module, given by its names.

    Modules in it are public, but where ``__all__`` does not list them.
    """
    within = _library(names["__name__"])
    listed = names.get("__all__", names)
    for name, value in list(names.items()):
        if isinstance(value, ModuleType):
            own = name in listed and _belongs_to(value, within)
        else:
            own = _belongs_to(value, within) or (
                name in names.get("__all__", ()) and inspect.isfunction(value)
            )
        if own and not name.startswith("_"):
            names[name] = with_boundary(value)


def with_boundary(value: Any) -> Any:
    """What users get for a function, class or module of the package."""
    if inspect.isfunction(value):
        return _function(value)
    if isinstance(value, type):
        if not issubclass(value, (BaseException, enum.Enum, tuple)):
            _guard_class(value)
    elif isinstance(value, ModuleType) and value not in _known:
        _known[value] = value
        guard_namespace(vars(value))
    return value


def prepared(name: str, value: Any) -> Any:
    """``with_boundary`` for ``lazy.attach``: what is not the package's own stays."""
    return with_boundary(value) if _belongs_to(value, "twofold") else value


def _library(module: str) -> str:
    """The package right below ours that a module is in."""
    return ".".join(module.split(".")[:2])


def _belongs_to(value: Any, package: str) -> bool:
    """Whether a function, class or module is in a package of ours, or in one below it."""
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, type) or inspect.isfunction(value):
        name = value.__module__
    else:
        return False
    return name == package or name.startswith(package + ".")


def is_boundary(value: Any) -> bool:
    """Whether a callable of the core is a boundary of a function that has its own name in its module."""
    return isinstance(value, _Operation) and value.__wrapped__ in UNWORDED


def find(module: str, name: str) -> Any:
    """The boundary of the function that a module has under a dotted name; copies and files of functions use it."""
    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return with_boundary(value)


class Iteration(Iterator[Any]):
    """An iterator of the package whose errors end at the user's loop."""

    def __init__(self, inner: Iterator[Any]) -> None:
        self._inner = inner

    def __next__(self) -> Any:
        try:
            return next(self._inner)
        except Exception as error:
            end_at_user(error)
            raise


def boundary(function: Any) -> Any:
    """A function of the package as a callable whose errors end at the user's line; one that is no boundary itself."""
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.iscoroutinefunction(inner):
        return function
    if end_at_user.__name__ in function.__code__.co_names:  # it is the boundary itself
        return function
    behind = _twin(function)  # the function itself may stand behind a callable that writes its error messages
    made = _core.operation_callable(None, _LIBRARY, behind)
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(made, name, getattr(function, name))
    for name, value in function.__dict__.items():
        if name not in ("__wrapped__", "__signature__"):  # which lead to the function itself
            setattr(made, name, value)
    UNWORDED.add(behind)
    return made


def _twin(function: FunctionType) -> FunctionType:
    """Another function of the same code, names and attributes."""
    made = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    for name in ("__kwdefaults__", "__annotations__", "__module__", "__qualname__", "__doc__"):
        setattr(made, name, getattr(function, name))
    made.__dict__.update(function.__dict__)
    return made


def _function(function: Any) -> Any:
    if function not in _known:
        _known[function] = boundary(function)
    return _known[function]


def _guard_class(cls: type) -> None:
    if cls in _known:
        return
    _known[cls] = cls
    guard_methods(cls)
    for base in cls.__mro__[1:]:
        if _belongs_to(base, _library(cls.__module__)):
            _guard_class(base)


def guard_methods(cls: type) -> None:
    """Put the boundary before the methods of a class."""
    for name, value in list(vars(cls).items()):
        if name in _INSIDE or (name.startswith("_") and not name.startswith("__")):
            continue
        if inspect.isfunction(value):
            setattr(cls, name, _function(value))
        elif isinstance(value, (staticmethod, classmethod)) and inspect.isfunction(value.__func__):
            setattr(cls, name, type(value)(_function(value.__func__)))
