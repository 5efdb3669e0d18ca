"""Bases of data pipes: data sets that are chained by methods, ``pipe.map(f).batch(4)``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from twofold.utils.data.dataset import Dataset, IterableDataset


class _Pipe:
    """What both kinds share: the functions that are methods of every pipe of the kind."""

    functions: ClassVar[dict[str, Any]] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.functions:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(self.functions[name], self)

    def __repr__(self) -> str:
        return type(self).__name__

    @classmethod
    def register_function(cls, function_name: str, function: Any) -> None:
        """Have ``function(pipe, ...)`` called by a method of all pipes of the kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Have a class of pipes made by a method of all pipes of the kind.

        Args:
            function_name: The name of the method.
            cls_to_register: The class.
            enable_df_api_tracing: Must be false: there are no data frames.

        Raises:
            Exception: The name is taken.
        """
        if enable_df_api_tracing:
            raise NotImplementedError("enable_df_api_tracing: there are no data frames. Leave it out.")
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken. Use another name."
            )
        cls.functions[function_name] = cls_to_register


class IterDataPipe(_Pipe, IterableDataset):
    """Base of data pipes that are iterated over: ``__iter__`` gives samples.

    >>> import twofold as torch
    >>> from twofold.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(5)).map(lambda x: x * x).filter(lambda x: x > 0).batch(2))
    [[1, 4], [9, 16]]
    """

    functions: ClassVar[dict[str, Any]] = {}


class MapDataPipe(_Pipe, Dataset):
    """Base of data pipes that are indexed: ``__getitem__`` gives the sample of an index or key.

    >>> import twofold as torch
    >>> from twofold.utils.data.datapipes.map import SequenceWrapper
    >>> pipe = SequenceWrapper([1, 2, 3]).map(lambda x: -x)
    >>> pipe[1], len(pipe)
    (-2, 3)
    """

    functions: ClassVar[dict[str, Any]] = {}


class DataChunk(list[Any]):
    """A batch of a pipe."""

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The samples as text, after ``indent``."""
        return indent + "[" + ", ".join(map(str, self)) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        """An iterator over the samples."""
        yield from self.items


class functional_datapipe:
    """Decorator of a class of data pipes, which makes it a method of all pipes of its kind.

    Args:
        name: The name of the method.
        enable_df_api_tracing: Must be false: there are no data frames.

    >>> import twofold as torch
    >>> @torch.utils.data.functional_datapipe("repeated_twice")
    ... class Twice(torch.utils.data.IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...     def __iter__(self):
    ...         for item in self.source:
    ...             yield from (item, item)
    >>> list(torch.utils.data.datapipes.iter.IterableWrapper([1, 2]).repeated_twice())
    [1, 1, 2, 2]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        if not isinstance(cls, type) or not issubclass(cls, _Pipe):
            raise TypeError("functional_datapipe can only decorate IterDataPipe or MapDataPipe")
        kind: Callable[..., None] = (
            IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        ).register_datapipe_as_function
        kind(self.name, cls, self.enable_df_api_tracing)
        return cls
