"""Event files hold what was written to them; the tensorboard package, where there is one, reads the same."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from twofold import nn
from twofold.errors import ArgumentError
from twofold.event_files import read_events
from twofold.protobuf import fields
from twofold.utils.tensorboard import SummaryWriter


def events_in(folder: Path) -> list[dict[int, Any]]:
    (path,) = folder.glob("events.out.tfevents.*")
    first, *rest = read_events(path)
    assert first[3] == b"brain.Event:2"
    return rest


def values_of(event: dict[int, Any]) -> dict[str, dict[int, Any]]:
    found = [dict(fields(content)) for _, content in fields(event[5])]
    return {value[1].decode(): value for value in found}


def as_float(bits: int) -> float:
    number: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return number


def write_all(folder: Path) -> None:
    with SummaryWriter(folder) as writer:
        writer.add_scalar("loss", torch.tensor(0.25), 7, walltime=12.5)
        writer.add_histogram("weights", numpy.float32([-3.0, -1e-3, 0.0, 2.0, 2.0]), 1)
        writer.add_image("picture", torch.ones(3, 2, 5) * 0.5)
        writer.add_text("note", "*hello*", 2)
        writer.add_graph(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.ones(2, 3))
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 3)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_all(tmp_path)
    scalar, histogram, image, text, graph = events_in(tmp_path)
    assert scalar[2] == 7 and struct.unpack("<d", struct.pack("<Q", scalar[1]))[0] == 12.5
    assert as_float(values_of(scalar)["loss"][2]) == 0.25
    message = dict(fields(values_of(histogram)["weights"][5]))
    limits, counts = (numpy.frombuffer(message[k], "<f8") for k in (6, 7))
    assert counts.sum() == 5 and len(limits) == len(counts)
    assert counts[numpy.searchsorted(limits, 2.0)] == 2 and limits[-1] >= 2.0
    pixels = dict(fields(values_of(image)["picture"][4]))
    assert (pixels[1], pixels[2], pixels[3]) == (2, 5, 3) and pixels[4].startswith(b"\x89PNG")
    data = pixels[4][pixels[4].index(b"IDAT") + 4 :]
    rows = zlib.decompressobj().decompress(data)
    assert rows == (b"\0" + b"\x80" * 15) * 2
    assert dict(fields(values_of(text)["note"][8]))[8] == b"*hello*"
    nodes = [dict(fields(node)) for _, node in fields(graph[4])]
    names = {node[1].decode(): node[2].decode() for node in nodes}
    assert names["Sequential/0/linear_0"] == "linear" and names["Sequential/1/relu_1"] == "relu"
    assert as_float(values_of(events_in(tmp_path / "both_b")[0])["both"][2]) == 2.0


def test_tensorboard_reads_the_same(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    write_all(tmp_path)
    found = accumulator.EventAccumulator(str(tmp_path))
    found.Reload()
    assert [(one.step, one.value) for one in found.Scalars("loss")] == [(7, 0.25)]
    assert found.Histograms("weights")[0].histogram_value.num == 5
    assert found.Images("picture")[0].width == 5
    assert "Sequential/1/relu_1" in {node.name for node in found.Graph().node}


def test_sessions_write_summaries(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        tf.summary.scalar("average", tf.reduce_mean(x))
        tf.summary.histogram("all", x)
        tf.summary.text("says", tf.constant("yes"))
        tf.summary.image("seen", tf.reshape(x, [1, 2, 2, 1]))
        merged = tf.summary.merge_all()
        metadata = tf.RunMetadata()
        with tf.summary.FileWriter(str(tmp_path), graph) as writer:
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            made = session.run(merged, {x: [1.0, 2.0, 3.0, 6.0]}, options=options, run_metadata=metadata)
            writer.add_summary(made, 5)
            writer.add_run_metadata(metadata, "step5", 5)
    declared, summary, profile = events_in(tmp_path)
    assert declared[4] == graph.as_graph_def().SerializeToString()
    found = values_of(summary)
    assert summary[2] == 5 and as_float(found["average"][2]) == 3.0
    assert set(found) == {"average", "all", "says", "seen/image/0"}
    assert dict(fields(profile[8]))[1] == b"step5"


def test_wrong_arguments(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(ArgumentError, match="has 2 elements"):
            writer.add_scalar("x", torch.ones(2))
        with pytest.raises(ArgumentError, match="named 'CHW'"):
            writer.add_image("x", torch.ones(2, 2))
        with pytest.raises(ValueError, match="Nan in summary histogram"):
            writer.add_histogram("x", numpy.float32([numpy.nan]))
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("x", numpy.float32([]))
