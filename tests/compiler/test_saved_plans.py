"""Plans on disk: a second process plans nothing, with the same bits, and never takes a plan that is not its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import twofold
from twofold.compiler import portable_template, saved_plans
from twofold.compiler.disk_cache import Archive, DiskCache, write_archive
from twofold.compiler.saved_plans import SavedPlans
from twofold.dtypes import float32
from twofold.ir.op import REGISTRY, Op
from twofold.ir.recording import Facts, Recording
from twofold.ir.size_program import SizeProgram
from twofold.ir.types import tensor_type

ROOT = Path(twofold.__file__).parents[1]

PROGRAM = """
import sys
import twofold as torch
from twofold.compiler.saved_plans import saved_plans
saved_plans()._archive = None  # only what the program plans itself counts
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
optimizer = torch.optim.Adam(net.parameters(), 0.1)
x = torch.linspace(-1, 1, 300).reshape(60, 5)
for batch in map(int, sys.argv[1:]):
    for _ in range(2):
        optimizer.zero_grad()
        rows = torch.softmax(net(x[:batch]), -1)[torch.arange(batch), torch.arange(batch) % 2]
        loss = rows.reshape(-1, 1).expand(batch, 3).std() + torch.einsum("i,i->", rows, rows)
        loss.backward()
        optimizer.step()
    print(loss.item().hex(), sum(p.sum().item() for p in net.parameters()).hex())
print(torch.stats().plans, torch.stats().plans_found, file=sys.stderr)
"""


BATCHES = """
import sys
import twofold as torch
from twofold import _core
from twofold.compiler.saved_plans import saved_plans
saved_plans()._archive = None
_core.set_batching("at_once")
torch.config.background_compile = False
w = torch.linspace(-1, 1, 12).reshape(4, 3).requires_grad_(True)
for n in map(int, sys.argv[1:]):
    rows = torch.linspace(-2, 2, 4 * n).reshape(n, 4)
    torch.stack([torch.tanh(rows[k : k + 1] @ w)[0] for k in range(n)]).sum().backward()
    print(w.grad.sum().item().hex())
assert torch.stats().batch_plans > 0
print(torch.stats().plans, torch.stats().plans_found, file=sys.stderr)
"""


FEW_CALLS = """
import sys
import twofold as torch
from twofold.compiler.saved_plans import saved_plans
saved_plans()._archive = None
torch.config.background_compile = False
calls, given, made = map(int, sys.argv[1:])
w = torch.linspace(-1, 1, given * made).reshape(made, given)
x = torch.linspace(-2, 2, given * calls).reshape(calls, given)
found = torch.stack([torch.tanh(torch.nn.functional.linear(row, w)) for row in x])
with torch.no_batching():
    assert torch.equal(found, torch.stack([torch.tanh(torch.nn.functional.linear(row, w)) for row in x]))
print(torch.stats().batch_plans > 0)
print(torch.stats().plans, torch.stats().plans_found, file=sys.stderr)
"""


class Run(NamedTuple):
    """What the program printed, and how many plans it made and found."""

    printed: str
    made: int
    found: int


def run(script: Path, cache: Path, *batches: int, program: str = PROGRAM, **settings: str) -> Run:
    """Run the program in a process of its own."""
    script.write_text(program)
    environment = os.environ | {"TWOFOLD_CACHE_DIR": str(cache), "TWOFOLD_TIER": "unfused"} | settings
    done = subprocess.run(
        [sys.executable, str(script), *map(str, batches)],
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    made, found = done.stderr.split()[-2:]
    return Run(done.stdout, int(made), int(found))


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved plans") / "program.py"


@pytest.fixture(scope="module")
def first(script: Path) -> Run:
    """The run that fills the cache."""
    return run(script, script.parent / "cache", 8, 20)


@pytest.fixture
def cache(first: Run, script: Path, tmp_path: Path) -> Path:
    """The directory that the first run has left."""
    return Path(shutil.copytree(script.parent / "cache", tmp_path / "cache"))


def test_a_second_process_plans_nothing(first: Run, script: Path, cache: Path) -> None:
    second = run(script, cache, 8, 20)
    assert first.made > 20
    assert second.made == 0 and second.found > 20
    assert second.printed == first.printed
    # what verifies makes its plans itself
    assert run(script, cache, 8, TWOFOLD_VERIFY="1").found == 0


def test_fused_programs_are_found_too(first: Run, script: Path, cache: Path) -> None:
    filled = run(script, cache, 8, TWOFOLD_TIER="fused")
    second = run(script, cache, 8, TWOFOLD_TIER="fused")
    assert filled.made > 0 and second.made == 0
    assert first.printed.startswith(filled.printed) and filled.printed == second.printed


def test_plans_for_all_sizes_are_found_in_other_sizes(first: Run, script: Path, cache: Path) -> None:
    other = run(script, cache, 8, 21)
    for plans in cache.glob("plans-*"):
        plans.unlink()
    alone = run(script, cache, 8, 21)
    # guards of a few plans tell the sizes apart
    assert other.found > 20 and other.made < alone.made / 10
    assert other.printed == alone.printed


def test_plans_of_traces_for_all_sizes_are_found(script: Path, cache: Path) -> None:
    filled = run(script, cache, 8, 20, 33, TWOFOLD_TIER="fused")
    second = run(script, cache, 8, 20, 33, TWOFOLD_TIER="fused")
    assert filled.made > 0 and second.made == 0
    assert second.printed == filled.printed


def test_plans_of_batches_are_found(script: Path, tmp_path: Path) -> None:
    first, second = (run(script, tmp_path, 20, 27, program=BATCHES, TWOFOLD_TIER="auto") for _ in range(2))
    assert first.made > 0 and second.made == 0 and second.found > 0
    assert second.printed == first.printed


@pytest.mark.parametrize("symbols", ["at_once", "sizes_at_once"])
def test_plans_of_the_package_serve_the_first_size(script: Path, tmp_path: Path, symbols: str) -> None:
    none = "saved_plans()._archive = None"
    archive = str(tmp_path / "archive")
    making = PROGRAM.replace(none, f"torch._core.set_templates({symbols!r}); {none}") + (
        "from twofold.compiler.disk_cache import write_archive\n"
        f"write_archive({archive!r}, [([key], plan) for key, plan in saved_plans().for_package().items()])\n"
    )
    taking = PROGRAM.replace(
        none, f"import twofold.compiler.disk_cache as c; saved_plans()._archive = c.Archive({archive!r})"
    )
    made = run(script, tmp_path / "made", 8, 20, program=making)
    found = run(script, tmp_path / "found", 9, 21, program=taking)
    alone = run(script, tmp_path / "alone", 9, 21)
    assert found.found > 20 and found.made < alone.made / 2
    assert found.printed == alone.printed
    assert made.printed == run(script, tmp_path / "other", 8, 20).printed


def test_what_was_not_planned_yet_is_planned_from_what_was_found(script: Path, cache: Path) -> None:
    further = run(script, cache, 8, 20, 3, 60, 2)
    for plans in cache.glob("plans-*"):
        plans.unlink()
    alone = run(script, cache, 8, 20, 3, 60, 2)
    assert further.printed == alone.printed
    assert further.found and further.made < alone.made


def test_another_program_and_a_damaged_file_find_nothing(first: Run, script: Path, cache: Path) -> None:
    assert run(script.with_name("other.py"), cache, 8).found == 0
    for path in cache.glob("plans-*"):
        path.write_bytes(path.read_bytes()[:-20])
    assert run(script, cache, 8, 20) == first._replace(found=0)


def test_plans_whose_kernels_are_gone(first: Run, script: Path, cache: Path) -> None:
    for path in cache.iterdir():
        if not path.name.startswith("plans-"):
            path.unlink()
    assert run(script, cache, 8, 20).printed == first.printed


def kept(directory: Path, **limits: int) -> SavedPlans:
    return SavedPlans(DiskCache(directory), "a program", **limits)


def test_keys(tmp_path: Path) -> None:
    plans, types = kept(tmp_path), (tensor_type(float32, (2,)),)
    op = REGISTRY["add"]
    assert plans.key(op, (1,), types) == plans.key(op, (1,), types)
    different = [
        (op, (1,)),
        (op, (1.0,)),
        (op, (True,)),
        (op, ("1",)),
        (op, ((1,),)),
        (REGISTRY["multiply"], (1,)),
    ]
    assert len({plans.key(*parts, types) for parts in different}) == len(different)
    assert plans.key(op, (1,), (tensor_type(float32, (2,), True),)) != plans.key(op, (1,), types)

    class Foreign(Op):
        name = "an operation of the user"
        kind = "host"

    assert plans.key(Foreign(), (), types) is None
    assert plans.key(op, (print,), types) is None


def test_what_other_sources_have_planned_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = kept(tmp_path)
    key = plans.key("one")
    plans.keep(key, 1)
    plans.flush()
    assert kept(tmp_path).read(key) == 1
    monkeypatch.setattr(saved_plans, "_fingerprint", lambda: b"other sources")
    other = kept(tmp_path)
    assert other.read(key) is None
    other.keep(other.key("two"), 2)
    other.flush()
    assert kept(tmp_path).read(key) is None and kept(tmp_path).read(other.key("two")) == 2


def test_plans_of_the_package_are_found_by_the_sources_that_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def archived() -> SavedPlans:
        archive = Archive(str(tmp_path / "archive"))
        return SavedPlans(DiskCache(tmp_path / "cache"), "a program", archive=archive)

    made = kept(tmp_path)
    key = made.key("one")
    made.keep_last(key, list(range(40)))
    write_archive(str(tmp_path / "archive"), [([own], plan) for own, plan in made.for_package().items()])
    plans = archived()
    assert plans.read(key) == list(range(8, 40)) and plans.found == 1
    assert plans.read(made.key("two")) is None
    plans.flush()
    with (
        monkeypatch.context() as patched
    ):  # what was asked for is the program's from now on, also that there is none
        patched.setattr(Archive, "read", lambda *_: pytest.fail("the archive is read"))
        again = archived()
        assert again.read(key) == list(range(8, 40)) and again.read(made.key("two")) is None
    shutil.rmtree(tmp_path / "cache")
    monkeypatch.setattr(saved_plans, "_planning_sources", lambda: b"other sources")
    assert archived().read(key) is None


def below(limit: int) -> bytes:
    """A size program that holds for sizes on the side of ``limit`` on which 5 is."""
    recording = Recording([5], [0], Facts())
    assert (recording.inputs[0] < limit) == (limit > 5)
    return SizeProgram(recording, [], recording.guards).encoded()


def test_of_the_package_only_plans_that_fit_become_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = kept(tmp_path)
    key = made.key("one")
    made.keep_last(key, [((limit - 1,), (below(limit), f"below {limit}")) for limit in (10, 100, 1000)])
    write_archive(str(tmp_path / "archive"), [([own], plan) for own, plan in made.for_package().items()])

    def asked(values: list[int], make: str | None = None) -> list[object]:
        """What is found for sizes in a new process, with ``make`` as what it would make."""
        archive = Archive(str(tmp_path / "archive"))
        plans = SavedPlans(DiskCache(tmp_path / "cache"), "a program", archive=archive)
        monkeypatch.setattr(portable_template, "saved_plans", lambda: plans)
        found: list[object] = []
        for value in values:
            plan = portable_template.matching_plan(
                key,
                [value],
                (lambda: make) if make else None,
                lambda plan: (below(10**6), plan),
                lambda plan: plan[1],
            )
            found.append(plan)
        found.append([made_for for made_for, written in plans.read_own(key) if written])
        plans.flush()
        return found

    assert asked([50, 5]) == ["below 100", "below 100", [(99,)]]
    assert asked([70, 5000, 500]) == ["below 100", None, "below 1000", [(99,), (999,)]]
    assert asked([5000], make="made") == ["made", [(99,), (999,), (5000,)]]
    monkeypatch.setattr(Archive, "read", lambda *_: pytest.fail("the archive is read"))
    assert asked([6000, 70]) == ["made", "below 100", [(99,), (999,), (5000,)]]


def test_what_was_used_least_recently_is_left_out(tmp_path: Path) -> None:
    first = kept(tmp_path)
    keys = [first.key(number) for number in range(4)]
    for key in keys[:3]:
        first.keep(key, b"x" * 1000)
    first.flush()
    second = kept(tmp_path, most_bytes=3500)
    assert second.read(keys[0]) == b"x" * 1000
    second.keep(keys[3], b"y" * 1000)
    second.flush()
    third = kept(tmp_path)
    assert [third.read(key) is not None for key in keys] == [True, False, True, True]
    assert third.read(keys[3]) == b"y" * 1000


def test_a_process_keeps_no_more_than_the_file_may_hold(tmp_path: Path) -> None:
    plans = kept(tmp_path, most_bytes=4000)
    keys = [plans.key(number) for number in range(20)]
    for key in keys:
        plans.keep(key, b"x" * 1000)
    assert sum(plans.read(key) is not None for key in keys) <= 4


def test_launches_of_few_calls_of_other_widths_find_a_plan_that_is_not_worth_making(
    script: Path, tmp_path: Path
) -> None:
    few = (40, 100, 130)
    assert run(script, tmp_path / "empty", *few, program=FEW_CALLS, TWOFOLD_TIER="auto").printed == "False\n"
    assert (
        run(script, tmp_path / "filled", 400, 90, 150, program=FEW_CALLS, TWOFOLD_TIER="auto").printed
        == "True\n"
    )
    second = run(script, tmp_path / "filled", *few, program=FEW_CALLS, TWOFOLD_TIER="auto")
    assert second.printed == "True\n"
