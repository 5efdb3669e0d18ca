"""What TensorBoard's plugins read of event files: hyperparameters, curves, layouts, embeddings."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
from tests.utils.test_event_files import events_in, values_of
from twofold.errors import ArgumentError
from twofold.event_plugins import precision_recall, sprite_of
from twofold.protobuf import entries, fields
from twofold.utils.tensorboard import SummaryWriter

LABELS = numpy.array([0, 1, 1, 0, 1, 0, 1, 1])
CHANCES = numpy.array([0.1, 0.95, 0.4, 0.6, 0.8, 0.35, 0.05, 1.0])
WEIGHTS = numpy.array([1.0, 2.0, 1.0, 0.5, 1.0, 3.0, 1.0, 1.0])


def content_of(value: dict[int, Any], plugin: bytes) -> bytes:
    data = dict(fields(dict(fields(value[9]))[1]))
    assert data[1] == plugin
    found: bytes = data.get(2, b"")
    return found


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_precision_and_recall_are_those_that_counting_gives(weights: Any) -> None:
    rows = precision_recall(LABELS, CHANCES, 11, weights)
    share = numpy.ones(8) if weights is None else weights
    for k in range(11):
        chosen = numpy.floor(CHANCES * 10) >= k
        counts = [
            share[(label == LABELS) & (chosen == positive)].sum()
            for label, positive in ((1, True), (0, True), (0, False), (1, False))
        ]
        hits, false, _, missed = counts
        ratios = [hits / max(hits + false, 1e-7), hits / max(hits + missed, 1e-7)]
        assert rows[:, k].tolist() == pytest.approx(counts + ratios)


def test_curves_and_layouts_are_read_back(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve("classes", torch.tensor(LABELS), torch.tensor(CHANCES), 3, 11)
        given = [numpy.arange(5.0) + k for k in range(6)]
        writer.add_pr_curve_raw("raw", *given, 4, 5)
        writer.add_custom_scalars_multilinechart(["a", "b"], "first", "both")
        writer.add_custom_scalars_marginchart(["a", "b", "c"])
        writer.add_histogram_raw("counted", 0.0, 3.0, 4, 6.0, 14.0, [1.0, 2.0, 3.0], [1, 2, 1])
        writer.add_audio("sound", torch.tensor([[0.0, 1.0, -1.0]]), 1, 8000)
    curve, raw, lines, margin, counted, sound = events_in(tmp_path)
    value = values_of(curve)["classes"]
    assert curve[2] == 3 and content_of(value, b"pr_curves") == b"\x10\x0b"  # num_thresholds: 11
    tensor = dict(fields(value[8]))
    assert [dict(fields(size))[1] for _, size in fields(tensor[2])] == [6, 11]
    found = numpy.frombuffer(tensor[5], "<f4").reshape(6, 11)
    assert found == pytest.approx(precision_recall(LABELS, CHANCES, 11))
    tensor = dict(fields(values_of(raw)["raw"][8]))
    assert numpy.frombuffer(tensor[5], "<f4").tolist() == numpy.stack(given).reshape(-1).tolist()

    def chart_of(event: dict[int, Any]) -> dict[int, Any]:
        value = values_of(event)["custom_scalars__config__"]
        assert content_of(value, b"custom_scalars") == b""
        category = dict(fields(dict(fields(dict(fields(value[8]))[8]))[2]))
        return {0: category[1], **dict(fields(category[2]))}

    assert chart_of(lines) == {0: b"first", 1: b"both", 2: b"\n\x01a\n\x01b"}
    assert chart_of(margin) == {0: b"default", 1: b"untitled", 3: b"\n\x09\n\x01a\x12\x01b\x1a\x01c"}
    message = dict(fields(values_of(counted)["counted"][5]))
    assert numpy.frombuffer(message[6], "<f8").tolist() == [1.0, 2.0, 3.0]
    assert struct.pack("<Q", message[5]) == struct.pack("<d", 14.0)
    audio = dict(fields(values_of(sound)["sound"][6]))
    assert audio[4].endswith(struct.pack("<hhh", 0, 32767, -32767)) and audio[3] == 3


def test_hyperparameters_are_read_back(tmp_path: Path) -> None:
    values = {"rate": 0.5, "kind": "adam", "fast": True, "none": None, "size": torch.tensor([4])}
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams(values, {"loss": 0.25}, {"kind": ["adam", "sgd"]}, "one", 2)
    experiment, start, end, loss = events_in(tmp_path / "one")
    message = content_of(values_of(experiment)["_hparams_/experiment"], b"hparams")
    ((field, content),) = fields(message)
    infos = [dict(fields(info)) for number, info in fields(content) if number == 4]
    assert field == 2 and [(info[1], info[4]) for info in infos] == [
        (b"rate", 3), (b"kind", 1), (b"fast", 2), (b"size", 3),
    ]  # fmt: skip
    domain = [dict(fields(one)) for _, one in fields(infos[1][5])]
    assert domain == [{3: b"adam"}, {3: b"sgd"}]
    assert [dict(fields(dict(fields(one))[1]))[2] for number, one in fields(content) if number == 5] == [
        b"loss"
    ]
    ((field, content),) = fields(content_of(values_of(start)["_hparams_/session_start_info"], b"hparams"))
    held = [dict(fields(entry)) for _, entry in fields(content)]
    found = {entry[1].decode(): next(entries(entry[2])) for entry in held}
    assert field == 3 and found == {
        "rate": (2, 1, struct.pack("<d", 0.5)),
        "kind": (3, 2, b"adam"),
        "fast": (4, 0, 1),
        "size": (2, 1, struct.pack("<d", 4.0)),
    }
    message = content_of(values_of(end)["_hparams_/session_end_info"], b"hparams")
    assert message == b'"\x02\x08\x01'  # session_end_info: {status: SUCCESS}
    assert loss[2] == 2 and "loss" in values_of(loss)


def test_embeddings_are_files_of_the_projector(tmp_path: Path) -> None:
    vectors = numpy.float32([[0.5, 1 / 3], [2.0, -1.0], [0.0, 4.0]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(vectors, ["a", "b", "c"], torch.ones(3, 1, 2, 3), 7, 'a/b "c"')
        writer.add_embedding(
            torch.tensor(vectors), [["x", 1], ["y", 2], ["z", 3]], metadata_header=["name", "n"]
        )
    folder = tmp_path / "00007" / 'a%2fb "c"'
    read = [list(map(float, line.split("\t"))) for line in (folder / "tensors.tsv").read_text().splitlines()]
    assert read == vectors.tolist()
    assert (folder / "metadata.tsv").read_text() == "a\nb\nc\n"
    image = (folder / "sprite.png").read_bytes()
    assert struct.unpack(">II", image[16:24]) == (6, 6)
    rows = numpy.frombuffer(zlib.decompressobj().decompress(image[image.index(b"IDAT") + 4 :]), "uint8")
    assert (
        rows.reshape(6, 19)[:, 1:].reshape(6, 6, 3)[..., 0].tolist()
        == [[255] * 6] * 2 + [[255, 255, 255, 0, 0, 0]] * 2 + [[0] * 6] * 2
    )
    table = (tmp_path / "00000" / "default" / "metadata.tsv").read_text()
    assert table == "name\tn\nx\t1\ny\t2\nz\t3\n"
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'image_path: "00007/a%2fb \\"c\\"/sprite.png"' in config and config.count("embeddings {") == 2
    assert sprite_of(numpy.zeros((3, 9, 2, 3), "uint8")).shape == (10, 10, 3)  # 5 in a row


def test_the_plugins_of_tensorboard_read_the_same(tmp_path: Path) -> None:
    hparams = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    text_format = pytest.importorskip("google.protobuf.text_format")
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"rate": 0.5, "fast": False}, {"loss": 1.0}, run_name="one")
        writer.add_embedding(numpy.eye(2), tag="words")
        writer.add_pr_curve("classes", LABELS, CHANCES)
    value = values_of(events_in(tmp_path / "one")[1])["_hparams_/session_start_info"]
    start = hparams.HParamsPluginData.FromString(content_of(value, b"hparams")).session_start_info
    assert start.hparams["rate"].number_value == 0.5 and start.hparams["fast"].bool_value is False
    config = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), ProjectorConfig())
    assert config.embeddings[0].tensor_path == "00000/words/tensors.tsv"
    value = values_of(events_in(tmp_path)[0])["classes"]
    assert PrCurvePluginData.FromString(content_of(value, b"pr_curves")).num_thresholds == 127


def test_wrong_arguments(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        for match, call in (
            ("labels \\[8\\] for predictions \\[2\\]", lambda: writer.add_pr_curve("x", LABELS, [0.0, 1.0])),
            ("outside of 0 to 1", lambda: writer.add_pr_curve("x", LABELS, CHANCES + 1)),
            ("for 127 thresholds", lambda: writer.add_pr_curve_raw("x", *[numpy.ones(5)] * 6)),
            ("with 2 tags", lambda: writer.add_custom_scalars_marginchart(["a", "b"])),
            ("2 limits for 1 counts", lambda: writer.add_histogram_raw("x", 0, 1, 1, 1, 1, [1, 2], [1])),
            ("3 labels for 2 vectors", lambda: writer.add_embedding(numpy.eye(2), ["a"] * 3)),
            ("one in each row", lambda: writer.add_embedding(numpy.ones(2))),
            ("2 columns", lambda: writer.add_embedding(numpy.eye(1), [["a"]], metadata_header=["a", "b"])),
            ("one channel", lambda: writer.add_audio("x", numpy.ones((2, 2)))),
        ):
            with pytest.raises(ArgumentError, match=match):
                call()
        with pytest.raises(TypeError, match="should be dictionaries"):
            writer.add_hparams([], {})  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="hparam_domain_discrete"):
            writer.add_hparams({"rate": 0.1}, {}, {"rate": ["a"]})
        with pytest.raises(ValueError, match="is of type list"):
            writer.add_hparams({"rate": [0.1]}, {})


def test_meshes_and_tensors_are_read_back(tmp_path: Path) -> None:
    points = torch.arange(12.0).reshape(1, 4, 3)
    with SummaryWriter(tmp_path) as writer:
        writer.add_mesh("cloud", points, colors=torch.full((1, 4, 3), 7), config_dict={"a": 1}, global_step=2)
        writer.add_tensor("weights", torch.tensor([[1, 2]]), 5)
    vertices, colours, whole = events_in(tmp_path)
    value = values_of(vertices)["cloud_VERTEX"]
    content = list(fields(content_of(value, b"mesh")))
    assert content == [(2, b"cloud"), (3, 1), (5, b'{"a": 1}'), (6, 1), (6, 4), (6, 3), (7, 1 << 1 | 1 << 3)]
    tensor = dict(fields(value[8]))
    assert tensor[1] == 1 and numpy.frombuffer(tensor[4], "<f4").tolist() == list(range(12))
    tensor = dict(fields(values_of(colours)["cloud_COLOR"][8]))
    assert tensor[1] == 4 and tensor[4] == bytes([7] * 12)
    value = values_of(whole)["weights"]
    tensor = dict(fields(value[8]))
    assert whole[2] == 5 and content_of(value, b"tensor") == b"" and tensor[1] == 9
    assert numpy.frombuffer(tensor[4], "<i8").tolist() == [1, 2]
    with (
        SummaryWriter(tmp_path / "wrong") as writer,
        pytest.raises(ArgumentError, match=r"VERTEX of shape \[4, 3\]"),
    ):
        writer.add_mesh("cloud", points[0])


def gif_frames(data: bytes) -> list[Any]:
    """The frames of a GIF file, by the format's specification, with the table of strings of LZW."""
    assert data[:6] == b"GIF89a" and data[-1:] == b"\x3b"
    width, height = struct.unpack("<HH", data[6:10])
    at, frames = 13, []
    while data[at] != 0x3B:
        if data[at] == 0x21:
            at += 2
            while data[at]:
                at += data[at] + 1
            at += 1
            continue
        assert data[at] == 0x2C and data[at + 9] == 0x87
        table = numpy.frombuffer(data[at + 10 : at + 778], numpy.uint8).reshape(256, 3)
        at += 779
        packed = b""
        while data[at]:
            packed += data[at + 1 : at + 1 + data[at]]
            at += data[at] + 1
        at += 1
        frames.append(table[lzw(packed)].reshape(height, width, 3))
    return frames


def lzw(packed: bytes) -> list[int]:
    bits = numpy.unpackbits(numpy.frombuffer(packed, numpy.uint8), bitorder="little").tolist()
    at, size, before = 0, 9, None
    strings: dict[int, list[int]] = {}
    found: list[int] = []
    while True:
        code = sum(bit << k for k, bit in enumerate(bits[at : at + size]))
        at += size
        if code == 257:
            return found
        if code == 256:
            strings, size, before = {k: [k] for k in range(256)}, 9, None
            continue
        word = strings.get(code) or [*strings[before], strings[before][0]]  # type: ignore[index]
        if before is not None:
            strings[258 + len(strings) - 256] = [*strings[before], word[0]]
            if 258 + len(strings) - 256 == 1 << size and size < 12:
                size += 1
        found += word
        before = code


def test_films_are_read_back(tmp_path: Path) -> None:
    few = torch.randint(0, 200, (2, 3, 1, 20, 30)).to(torch.uint8)
    many = torch.rand(1, 2, 3, 40, 50)
    with SummaryWriter(tmp_path) as writer:
        writer.add_video("few", few, 1, fps=10)
        writer.add_video("many", many)
    first, second = events_in(tmp_path)
    image = dict(fields(values_of(first)["few"][4]))
    assert (image[1], image[2], image[3]) == (20, 60, 1)
    for k, frame in enumerate(gif_frames(image[4])):
        assert (frame[:, :, 0] == numpy.concatenate([few[0, k, 0].numpy(), few[1, k, 0].numpy()], 1)).all()
    assert struct.pack("<HB", 10, 0) in image[4]
    for k, frame in enumerate(gif_frames(dict(fields(values_of(second)["many"][4]))[4])):
        difference = numpy.abs(frame.astype(float) - many[0, k].permute(1, 2, 0).numpy() * 255)
        assert difference.max() <= 255 / 10 + 1


def test_files_are_flushed_by_the_queue_and_purge_steps_are_written(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path, "", 7, max_queue=2)
    (path,) = tmp_path.iterdir()
    size = path.stat().st_size
    writer.add_scalar("loss", 1.0, 8)
    writer.add_scalar("loss", 1.0, 9)
    assert path.stat().st_size == size
    writer.add_scalar("loss", 1.0, 10)
    assert path.stat().st_size > size
    writer.close()
    started, *_ = events_in(tmp_path)
    assert started[2] == 7 and started[7] == b"\x08\x01"  # SessionLog.START
    with SummaryWriter(tmp_path / "soon", flush_secs=0) as writer:
        writer.add_scalar("loss", 1.0, 8)
        (path,) = (tmp_path / "soon").iterdir()
        assert len(path.read_bytes()) > 60


def test_figures_are_images(tmp_path: Path) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    figure = figures.Figure(figsize=(2, 1), dpi=50)
    figure.patch.set_facecolor("red")
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("one", figure)
        writer.add_figure("two", [figure, figure])
    first, second = events_in(tmp_path)
    assert dict(fields(values_of(first)["one"][4]))[2] == 100
    assert dict(fields(values_of(second)["two"][4]))[2] == 200
