"""Derivatives of loops that the host runs: the iterations backwards, each from what it left behind."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from twofold.errors import GradientError
from twofold.static.functions.lowering import Repeat
from twofold.static.graph.graph import Operation
from twofold.static.graph.inference import Source, read_of


class LoopGradient:
    """The derivatives of ``loop`` by its inputs ``wanted``, given those by its results.

    Args:
        loop: A While or Repeat that the host runs.
        seeds: What stands for the derivative by each floating result of the body, by its index.
        found: The derivatives of the body by its arguments and captured values; None where there is no path.
        wanted: Inputs of the loop.
        weights: The derivatives by the results of the loop; None where there is none.
    """

    def __init__(
        self,
        loop: Operation,
        seeds: Mapping[int, Operation],
        found: Mapping[Source, Source | None],
        wanted: Sequence[Source],
        weights: Sequence[Source | None],
    ) -> None:
        self.loop, self.seeds, self.found, self.wanted = loop, dict(seeds), dict(found), list(wanted)
        self.weighted = [k for k, weight in enumerate(weights) if weight is not None]
        self.body = loop.hosted.bodies[-1]
        self.fetched = [source for source in self.found.values() if source is not None]

    def iterate(self, run: Any, *arrays: Any) -> list[Any]:
        """The derivatives for arrays of the weights."""
        record = run.records.get(self.loop)
        if record is None:
            raise GradientError(
                f"gradients: {self.loop.name} ({self.loop.where}) is fed, so that its iterations are not known",
                "Leave it out of feed_dict.",
            )
        flow = self.loop.hosted
        given = dict(zip(self.weighted, arrays))
        results = dict(zip(run.feeds, run.values))
        count = len(flow.names)
        carried = {k: given.get(k, numpy.zeros_like(results[self.loop, k])) for k in self.seeds if k < count}
        last = len(record.parts) - 1
        falling = isinstance(flow, Repeat) and flow.reverse
        rows: dict[int, dict[int, Any]] = {}
        totals: dict[Source, Any] = {}
        for step in range(last, -1, -1):  # the iteration made last comes first
            number = last - step if falling else step
            stacked = {k: given[k][number] for k in given if k >= count}
            found = self._iteration(record.parts[step], {**carried, **stacked})
            for k, argument in enumerate(self.body.arguments):
                value = found.pop((argument, 0), None)
                if value is not None and k < count:
                    carried[k] = value
                elif value is not None:
                    rows.setdefault(k, {})[number] = value
            for source, value in found.items():
                totals[source] = value if source not in totals else totals[source] + value
        for k, each in rows.items():
            carried[k] = numpy.stack([each[number] for number in sorted(each)])
        return [self._by(run, source, carried, totals, record.arrays) for source in self.wanted]

    def _iteration(self, part: Any, weights: Mapping[int, Any]) -> dict[Source, Any]:
        """The derivatives of one iteration by arguments (zeros where there is no path) and captured values."""
        seeds = [(seed, 0) for seed in self.seeds.values()]
        values = [weights[k] if k in weights else numpy.zeros_like(part.results[k]) for k in self.seeds]
        made = iter(part.resumed(seeds, values).result(self.fetched, ()))
        found = {by: next(made) for by, source in self.found.items() if source is not None}
        given = dict(zip(part.feeds, part.values))
        for argument in self.body.arguments:
            source = (argument, 0)
            if source in self.found and source not in found:
                found[source] = numpy.zeros_like(given[source])
        return found

    def _by(
        self,
        run: Any,
        source: Source,
        carried: Mapping[int, Any],
        totals: Mapping[Source, Any],
        arrays: Sequence[Any],
    ) -> Any:
        """The derivative by one input: as a start of what is carried, as rows, and as what the body captures."""
        positions = [k for k in range(len(self.body.arguments)) if self.loop.sources[k] == source]
        parts = [carried[k] for k in positions if k in carried]
        parts += [totals[source]] if source in totals else []
        if parts:
            return functools.reduce(numpy.add, parts)
        variable = read_of(source)
        if variable is not None and source not in self.loop.sources:
            return numpy.zeros_like(run.session._state[variable].numpy())
        return numpy.zeros_like(arrays[self.loop.sources.index(source)])
