"""``stats``: counters of recording, planning, compiling, caches and memory in this process."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, fields

from twofold import _core
from twofold.cache import Cache
from twofold.compiler import jit
from twofold.compiler.saved_plans import saved_plans
from twofold.compiler.totals import TOTALS


@dataclass(frozen=True)
class CacheStats:
    """The size of a cache, and its hits and misses.

    ``bytes`` are an estimate; entries in use are not evicted, so they may be above ``budget`` for a while.
    ``evictions`` are the entries that were dropped to stay within the budget.
    """

    count: int
    bytes: int
    budget: int
    hits: int
    misses: int
    evictions: int


_COLUMNS = [column.name for column in fields(CacheStats)]


@dataclass(frozen=True)
class Stats:
    """Counts since the start of the process, and what is kept now; printed as tables.

    Attributes:
        recorded: Calls of operations recorded.
        predicted: Flushed traces that equalled the predicted one, without a look-up.
        looked_up: Flushed traces that were looked up or planned.
        replayed_passes: Backward passes that were replayed as a whole.
        plans: Graphs planned, of single calls and of traces.
        plan_seconds: Time in passes, schedule and emission of LLVM IR.
        fused: Traces compiled as one program.
        bodies: Bodies planned for these.
        body_calls: Calls of bodies in these.
        fused_dropped: Fused traces that measured slower than op-by-op execution.
        families: Classes of op instances that differ in integers only.
        templates: Plans for symbolic sizes.
        template_programs: Programs for symbolic sizes.
        template_uses: Op instances that were instantiated from a template.
        templates_refused: Families that cannot be planned for symbolic sizes.
        trace_plans: Whole traces planned for symbolic sizes.
        trace_plan_uses: Traces that were instantiated from such a plan.
        declared_graphs: Graphs of sessions that were declared to the core, by the types that were fed.
        declared_bodies: Bodies of operations that ran for this.
        open_graphs: Those of them with symbolic sizes.
        open_graph_uses: Further sizes for which such a graph was specialised.
        batched_traces: Traces that ran in batches.
        batch_launches: Launches of batched calls.
        batched_calls: The calls in these.
        batch_plans: Programs planned for a symbolic batch size.
        background_runs: Runs in batches that went on while the program recorded.
        kernels: Kernels whose machine code is in memory.
        kernels_compiled: Kernels that LLVM compiled.
        compile_seconds: Time in LLVM, in loading code, and in waiting for the lock of the compiler.
        plans_found: Plans that were read from the disk cache.
        prebuilt: Kernels from the archive of the package.
        disk_hits: Kernels loaded from the disk cache.
        disk_misses: Kernels that were not in the disk cache.
        pool_in_use: Bytes of the memory pool that tensors and programs hold.
        pool_cached: Bytes of the pool that are free.
        pool_peak: Peak bytes in use.
        locations: Source locations known.
        caches: Count, bytes, budget, hits, misses and evictions of each cache by name.
    """

    recorded: int
    predicted: int
    looked_up: int
    replayed_passes: int
    plans: int
    plan_seconds: float
    fused: int
    bodies: int
    body_calls: int
    fused_dropped: int
    families: int
    templates: int
    template_programs: int
    template_uses: int
    templates_refused: int
    trace_plans: int
    trace_plan_uses: int
    declared_graphs: int
    declared_bodies: int
    open_graphs: int
    open_graph_uses: int
    batched_traces: int
    batch_launches: int
    batched_calls: int
    batch_plans: int
    background_runs: int
    kernels: int
    kernels_compiled: int
    compile_seconds: float
    plans_found: int
    prebuilt: int
    disk_hits: int
    disk_misses: int
    pool_in_use: int
    pool_cached: int
    pool_peak: int
    locations: int
    caches: dict[str, CacheStats] = field(repr=False)

    def __str__(self) -> str:
        lines = []
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "caches":
                continue
            shown = f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
            lines.append(f"{one.name:<18}{shown:>16}")
        lines += ["", f"{'cache':<18}" + "".join(f"{name:>14}" for name in _COLUMNS)]
        for name, found in self.caches.items():
            lines.append(f"{name:<18}" + "".join(f"{number:>14,}" for number in astuple(found)))
        return "\n".join(lines)


def all_caches() -> dict[str, CacheStats]:
    """Every cache by name, those of the core first.

    >>> "traces" in all_caches()
    True
    """
    found = {name: CacheStats(*numbers) for name, *numbers in _core.caches()}
    return found | {cache.name: CacheStats(*cache.numbers()) for cache in Cache.all()}


def stats() -> Stats:
    """Counters of recording, planning, compiling, caches and memory in this process; they print as tables.

    See ``docs/inside.md``. Caches keep within ``twofold.config.cache_bytes`` (``TWOFOLD_CACHE_BYTES``) in all.

    >>> import twofold as torch
    >>> before = torch.stats()
    >>> torch.ones(3).sum().item()
    3.0
    >>> after = torch.stats()
    >>> after.recorded - before.recorded
    2
    >>> "pool_in_use" in str(after), after.caches["traces"].count > 0
    (True, True)
    """
    core = _core.statistics()
    compiler = jit.counts()
    return Stats(
        recorded=core["recorded"],
        predicted=core["predicted_flushes"],
        looked_up=core["other_flushes"],
        replayed_passes=core["replayed_passes"],
        plans=TOTALS.plans,
        plan_seconds=TOTALS.plan_seconds,
        fused=TOTALS.fused,
        bodies=TOTALS.bodies,
        body_calls=TOTALS.calls,
        fused_dropped=core["fused_dropped"],
        families=core["families"],
        templates=core["templates"],
        template_programs=core["template_programs"],
        template_uses=core["template_uses"],
        templates_refused=core["templates_refused"],
        trace_plans=core["trace_plans"],
        trace_plan_uses=core["trace_plan_uses"],
        declared_graphs=core["declared_graphs"],
        declared_bodies=core["declared_bodies"],
        open_graphs=core["open_graphs"],
        open_graph_uses=core["open_graph_uses"],
        batched_traces=core["batched_traces"],
        batch_launches=core["batch_launches"],
        batched_calls=core["batched_calls"],
        batch_plans=core["batch_plans"],
        background_runs=core["background_runs"],
        kernels=compiler.known,
        kernels_compiled=compiler.compiled,
        compile_seconds=TOTALS.kernel_seconds,
        plans_found=saved_plans().found,
        prebuilt=compiler.prebuilt,
        disk_hits=compiler.disk_hits,
        disk_misses=compiler.disk_misses,
        pool_in_use=core["pool_in_use_bytes"],
        pool_cached=core["pool_cached_bytes"],
        pool_peak=core["pool_peak_bytes"],
        locations=_core.location_count(),
        caches=all_caches(),
    )
