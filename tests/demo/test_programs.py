"""The demonstration itself: both programs reach the same bits, and the command line says so."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from twofold.__main__ import main
from twofold.demo import dynamic, static
from twofold.demo.task import first_difference, load_task


def test_both_programs_end_with_the_same_bits() -> None:
    task = load_task(None, 2)
    first, second = dynamic.train(task), static.train(task)
    assert first_difference(first.weights, second.weights) is None
    assert first.losses == second.losses
    assert first.accuracy == second.accuracy > 0.7
    assert [array.shape for array in first.weights] == [array.shape for array in task.initial_weights()]
    assert first_difference(first.weights, task.initial_weights()) is not None
    assert any(node.name == "images" for node in second.graph) and len(second.graph) > 10


def test_command_writes_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "page.html"
    assert main(["demo", "--epochs", "1", "--report", str(report)]) == 0
    assert "final weights: equal bit for bit" in capsys.readouterr().out
    assert "Equal bit for bit" in report.read_text(encoding="utf-8")


def test_command_reads_mnist_files(tmp_path: Path) -> None:
    random = numpy.random.default_rng(0)
    for part, count in (("train", 130), ("t10k", 20)):
        for name, magic, shape in (
            ("images-idx3", 2051, (count, 28, 28)),
            ("labels-idx1", 2049, (count,)),
        ):
            header = b"".join(number.to_bytes(4, "big") for number in (magic, *shape))
            content = random.integers(0, 10, shape, dtype=numpy.uint8).tobytes()
            (tmp_path / f"{part}-{name}-ubyte.gz").write_bytes(gzip.compress(header + content))
    report = tmp_path / "page.html"
    assert main(["demo", "--mnist", str(tmp_path), "--epochs", "1", "--report", str(report)]) == 0
    assert "784" in report.read_text(encoding="utf-8")


def test_command_names_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--mnist", str(tmp_path)]) == 2
    assert "neither train-images-idx3-ubyte nor" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["demo", "--epochs", "0"], ["unknown"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)


def test_module_can_be_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twofold", "--help"], capture_output=True, text=True, check=True
    )
    assert "demo" in done.stdout
