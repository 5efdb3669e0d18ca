"""``import twofold`` loads little, every public name is there all the same, and threads may touch names at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import twofold as torch
from twofold import lazy
from twofold.ir.op import REGISTRY, Op, register
from twofold.names import NAMES
from twofold.ops.base import FUNCTIONS as PLAIN
from twofold.ops.base import METHODS

ROOT = Path(__file__).resolve().parent.parent
MOST_MODULES = 77
MOST_FOR_A_PROGRAM = 138
MOST_OF_STATIC = 127
FOREIGN = {"__future__", "atexit", "copy", "threading"}
"""What the package imports beside NumPy, what NumPy imports, and what finds an editable install."""


def printed(program: str) -> Any:
    """What a fresh process prints, as JSON."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_few_modules_are_imported() -> None:
    loaded = printed(
        "import sys, json, importlib.util, numpy; before = set(sys.modules); import twofold;"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    own = [name for name in loaded if name.split(".")[0] == "twofold"]
    assert len(own) <= MOST_MODULES, own
    assert set(loaded) - set(own) <= FOREIGN


def test_define_then_run_is_light_too() -> None:
    loaded = printed("import sys, json, twofold.static; print(json.dumps(list(sys.modules)))")
    own = [name for name in loaded if name.split(".")[0] == "twofold"]
    assert len(own) <= MOST_OF_STATIC, own
    assert not {"argparse", "logging", "shutil", "twofold.distributions"} & set(loaded)


def test_a_small_program_needs_few_more() -> None:
    own, compiler = printed(
        "import sys, json, twofold as torch; x = torch.ones(3); (x * 2).sum().item();"
        "own = [name for name in sys.modules if name.split('.')[0] == 'twofold'];"
        "print(json.dumps([own, 'twofold.compiler.lower.gemm' in own or 'twofold.compiler.lower.math.gamma' in own]))"
    )
    assert len(own) <= MOST_FOR_A_PROGRAM, own
    assert not compiler


def test_a_small_program_that_is_compiled_needs_few_more(tmp_path: Path) -> None:
    """With an empty cache, and without the kernels that the package brings along."""
    own = printed(
        f"import os, sys, json; os.environ['TWOFOLD_CACHE_DIR'] = {str(tmp_path)!r};"
        "from twofold.compiler import disk_cache; disk_cache.archive_of = lambda level: None;"
        "import twofold as torch; x = torch.ones(3); (x * 2).sum().item();"
        "own = [name for name in sys.modules if name.split('.')[0] == 'twofold'];"
        "print(json.dumps([own, 'twofold.compiler.compile' in own]))"
    )
    assert own[1] and len(own[0]) <= MOST_FOR_A_PROGRAM, own


def test_a_program_whose_plans_are_saved_loads_no_planner(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        f"""import os, sys, json
os.environ["TWOFOLD_CACHE_DIR"] = {str(tmp_path)!r}
import twofold as torch
layers = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
for _ in range(6):
    loss = layers(torch.ones(7, 3)).sum()
    loss.backward()
    loss.item()
    torch.wait_for_compiler()
print(json.dumps([torch.stats().fused, "twofold.compiler.compile" in sys.modules]))
"""
    )
    again = f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"
    first, second = printed(again), printed(again)
    assert first[1]
    assert second == [first[0], False] and first[0] > 0


@pytest.mark.parametrize("package", sorted(NAMES))
def test_every_name_is_found_in_a_fresh_process(package: str) -> None:
    """Those listed, by a star import, and each alone."""
    listed, starred = printed(
        f"import json, {package} as package; names = dir(package); space = {{}};"
        f"[getattr(package, name) for name in names]; exec('from {package} import *', space);"
        "print(json.dumps([names, sorted(space)]))"
    )
    late = set(lazy.late_names(package))
    assert late <= set(listed)
    assert {name for name in late if not name.startswith("_")} <= set(starred)


def test_all_ways_to_import_a_library_lead_to_one_module() -> None:
    same = printed(
        "import json, sys, twofold as torch; from twofold import nn; import twofold.nn as again;"
        "from twofold.nn import Linear;"
        "print(json.dumps([nn is again is torch.nn is sys.modules['twofold.nn'], torch.nn.Linear is Linear]))"
    )
    assert same == [True, True]


def test_a_module_needs_no_other_before_it() -> None:
    """Every module of operations and of define-then-run is the first that a process touches, each in a child."""
    files = [
        path for folder in ("ops", "static") for path in sorted((ROOT / "twofold" / folder).rglob("*.py"))
    ]
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    names = [module.removesuffix(".__init__") for module in modules]
    program = """
import json, os, sys, twofold
failed = []
for name in MODULES:
    child = os.fork()
    if not child:
        try:
            __import__(name)
        except BaseException:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(name)
print(json.dumps(failed))
"""
    assert printed(program.replace("MODULES", repr(names))) == []


THREADS = """
import json, sys, threading
import twofold as torch
sys.setswitchinterval(1e-6)
touch = [
    lambda: torch.cond,
    lambda: torch.fft.fft,
    lambda: torch.linalg.qr(torch.ones(2, 2)).R.shape,
    lambda: torch.special.erf.__doc__,
    lambda: torch.nn.Linear,
    lambda: torch.ones(2).softmax(0).sum().item(),
    lambda: torch.ones(2).clamp_(0, 1).tolist(),
]
found, errors = [[] for _ in touch], []
barrier = threading.Barrier(8)
def work(start):
    barrier.wait()
    for k in range(len(touch)):
        one = (k + start) % len(touch)
        try:
            found[one].append(touch[one]())
        except BaseException as error:
            errors.append(repr(error))
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
same = [all(value is values[0] or value == values[0] for value in values) for values in found]
print(json.dumps([errors, [len(values) for values in found], same]))
"""


def test_threads_that_touch_a_name_at_once_get_one_object() -> None:
    assert printed(THREADS) == [[], [8] * 7, [True] * 7]


def test_an_interrupted_import_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "interrupted_entries.py"
    module.write_text(
        "import tests_state\nfrom twofold.lazy import Registry\n"
        "tests_state.table.enter('one', 1)\ntests_state.check()\ntests_state.table.enter('two', 2)\n"
    )
    state: Any = type(sys)("tests_state")
    state.table = lazy.Registry({"one": "interrupted_entries", "two": "interrupted_entries"})

    def interrupt() -> None:
        state.check = lambda: None
        raise KeyboardInterrupt

    state.check = interrupt
    monkeypatch.setitem(sys.modules, "tests_state", state)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        state.table["two"]
    assert (state.table["two"], state.table["one"], list(state.table)) == (2, 1, ["one", "two"])


def test_a_look_up_of_a_name_whose_module_is_being_imported_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "circular_entries.py").write_text(
        "import tests_state\ntests_state.table.enter('one', 1)\ntests_state.table['one']\n"
    )
    state: Any = type(sys)("tests_state")
    state.table = lazy.Registry({"one": "circular_entries"})
    monkeypatch.setitem(sys.modules, "tests_state", state)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError, match="'one' is looked up while circular_entries is being imported"):
        state.table["one"]


def test_a_table_shows_names_before_their_values_are_made() -> None:
    made: list[str] = []
    table = lazy.LazyDict(["b", "a"], lambda name: made.append(name) or name.upper())
    table["c"] = "extra"
    assert "a" in table and "d" not in table and table.get("d", 0) == 0 and made == []
    assert (list(table), len(table), list(table.keys())) == (["b", "a", "c"], 3, ["b", "a", "c"])
    assert made == []
    assert list(table.items()) == [("b", "B"), ("a", "A"), ("c", "extra")] and dict(table) == {**table}
    assert list(table.values()) == ["B", "A", "extra"] and made == ["b", "a"]
    with pytest.raises(KeyError):
        table["d"]


def test_entries_of_a_program_are_entered_once() -> None:
    class Own(Op):
        name, kind = "entry_of_a_test", "host"

    register(Own())
    try:
        assert REGISTRY["entry_of_a_test"].kind == "host" and "entry_of_a_test" in list(REGISTRY)
        with pytest.raises(ValueError, match="entered twice"):
            register(Own())
    finally:
        del REGISTRY["entry_of_a_test"]


def test_aliases_are_one_object_and_functions_are_methods() -> None:
    assert torch.absolute is torch.abs is torch.Tensor.absolute
    assert torch.exp_ is torch.Tensor.exp_
    assert PLAIN["abs"] is PLAIN["absolute"] is METHODS["absolute"]


def test_public_functions_are_pickled_by_name() -> None:
    copies = printed(
        "import json, pickle, twofold as torch; ones = (torch.exp, torch.linalg.qr, torch.cumsum);"
        "print(json.dumps([pickle.loads(pickle.dumps(one)) is one for one in ones]))"
    )
    assert copies == [True] * 3


def test_missing_names_are_said_as_python_says_them() -> None:
    with pytest.raises(AttributeError, match="module 'twofold' has no attribute 'nothing_such'"):
        torch.nothing_such  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nothing_such' from 'twofold'"):
        exec("from twofold import nothing_such")


def test_a_loader_must_make_a_callable() -> None:
    from twofold import _core

    wrong = _core.deferred_callable(lambda name: len, "x")  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="must make a callable of the core"):
        wrong([1])
    fails = _core.deferred_callable(lambda name: 1 // 0, "x")  # type: ignore[arg-type, return-value]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fails.__doc__  # noqa: B018
    assert isinstance(fails, type(torch.exp))
