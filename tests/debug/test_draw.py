"""Pictures, compared by their structure, and shown by a browser where there is one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.dynet as dy
import twofold.static as tf
from tests.debug.browser import CHROMIUM, FLAGS, Browser
from twofold import nn
from twofold.debug.draw import Drawing
from twofold.debug.page import ASSETS, divided
from twofold.debug.picture import Picture, View
from twofold.errors import ArgumentError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.body = nn.Sequential(nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(self.first(x))


def names(view: View) -> list[str]:
    return [step.name for step in view.steps]


def edges(view: View) -> set[tuple[str, str]]:
    """Pairs of operations of which the second reads the first."""
    found = set()
    for step in view.steps:
        for number in step.inputs:
            maker = view.data[number].producer
            if maker >= 0:
                found.add((view.steps[maker].name, step.name))
    return found


def test_a_tensor_before_and_after_it_is_observed() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = (x * 2.0).exp().sum()
    before = torch.draw(y).picture.views[0]
    assert names(before) == ["multiply", "exp", "sum"]
    assert edges(before) == {("multiply", "exp"), ("exp", "sum")}
    y.item()
    assert names(torch.draw(y).picture.views[0]) == names(before)
    here = test_a_tensor_before_and_after_it_is_observed.__code__.co_firstlineno
    step = before.steps[0]
    assert step.lines[0].startswith(f"{Path(__file__).name}:{here + 2}") and ".exp().sum()" in step.source
    (leaf,) = [datum for datum in before.data if datum.kind == "parameter"]
    assert leaf.type == "float32[2,3]" and leaf.nbytes == 24


def test_what_was_observed_on_the_way_is_one_picture() -> None:
    w = torch.ones(3, requires_grad=True)
    y = w * 2.0
    y.detach().numpy()
    view = torch.draw(y.exp().sum()).picture.views[0]
    assert names(view) == ["multiply", "exp", "sum"] and ("multiply", "exp") in edges(view)


def test_a_module_with_its_gradients() -> None:
    view = torch.draw(Net(), torch.ones(3, 4), backward=True).picture.views[0]
    forward = [step for step in view.steps if not step.backward]
    assert [(step.name, step.boxes) for step in forward[:3]] == [
        ("linear", ("Net", "first")),
        ("relu", ("Net", "body", "0")),
        ("linear", ("Net", "body", "1")),
    ]
    backward = [step for step in view.steps if step.backward]
    assert backward and all(step.boxes[0] == "backward" for step in backward)
    assert any(step.boxes == ("backward", "Net", "first") for step in backward)
    shown = {datum.name: datum.kind for datum in view.data if datum.producer < 0 and datum.kind != "constant"}
    assert shown["first.weight"] == "parameter" and shown["input 0"] == "input"


def test_operations_of_one_line_are_no_passes_unless_a_loop_leads_back() -> None:
    def once() -> Any:
        return dy.squared_norm(dy.inputVector([1.0, 2.0]))

    def often() -> Any:
        total = dy.inputVector([1.0, 2.0])
        for _ in range(2):
            total = dy.logistic(total) * dy.squared_norm(total)
        return total

    boxes = [box for step in torch.draw(once()).picture.views[0].steps for box in step.boxes]
    assert boxes and not any(box.startswith("pass ") for box in boxes)
    found = [step.boxes[-1] for step in torch.draw(often()).picture.views[0].steps]
    assert set(found) == {"pass 1", "pass 2"} and found == sorted(found)


def test_functions_and_passes_of_loops_are_boxes() -> None:
    def cell(h: Any) -> Any:
        return (h + 1.0).tanh()

    def loop(x: Any) -> Any:
        for _ in range(3):
            x = cell(x)
        return x

    view = torch.draw(loop, torch.ones(2)).picture.views[0]
    inner = [step.boxes for step in view.steps if step.name == "tanh"]
    assert [path[-1] for path in inner] == ["pass 1", "pass 2", "pass 3"]
    assert all(path[-2].startswith("cell (line ") and len(path) == 2 for path in inner)


class Activated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.relu = nn.Linear(4, 4), nn.Linear(4, 4), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.second(self.relu(self.first(x))))


def test_each_call_of_a_module_is_a_box() -> None:
    block = Activated()
    drawing = torch.draw(nn.Sequential(block, block), torch.ones(2, 4), backward=True)
    steps = drawing.picture.views[0].steps
    assert [step.boxes[1:] for step in steps if not step.backward] == [
        (call, inner) for call in ("0", "0 (2)") for inner in ("first", "relu", "second", "relu (2)")
    ]
    assert drawing.picture.classes["Sequential.0 (2).relu (2)"] == "ReLU"
    assert ("backward", "Sequential", "0 (2)", "relu (2)") in {step.boxes for step in steps}


def test_a_recursive_function_is_one_box() -> None:
    def node(depth: int) -> torch.Tensor:
        if not depth:
            return torch.ones(2, requires_grad=True) * 2.0
        parts = [node(depth - 1) for _ in range(2)]
        return torch.tanh(parts[0] - parts[1])

    def outer() -> torch.Tensor:
        return node(6).sum()

    made = outer()
    steps = torch.draw(made).picture.views[0].steps
    inner = {step.boxes for step in steps if step.name != "sum"}
    assert len(steps) > 100 and [path[-1].split()[0] for path in inner] == ["node"]


def test_boxes_of_functions_without_source_and_of_lambdas() -> None:
    def boxes_of(y: Any) -> set[str]:
        return {
            step.boxes[-1].split(" (line")[0] for step in torch.draw(y).picture.views[0].steps if step.inputs
        }

    x, space = torch.ones(2), {"torch": torch}
    exec(
        "def cell(h):\n    return h.tanh()\ndef net(x):\n    for _ in range(2):\n        x = cell(x)\n    return x",
        space,
    )
    assert boxes_of(space["net"](x)) == {"cell 1", "cell 2"}
    exec("def net(x):\n    return [x.sin() for _ in range(2)]", space)
    first, second = space["net"](x)
    name = "pass" if sys.version_info < (3, 12) else "net"  # which computes the list itself since
    assert boxes_of([first, second]) == {f"{name} 1", f"{name} 2"}
    halved = lambda x: x / 2
    assert boxes_of(halved(x)) == {"halved"}
    assert boxes_of((lambda x: x / 2 + 1)(x)) == {"lambda x: x / 2 + 1"}


def test_values_and_times() -> None:
    def steps(x: Any) -> Any:
        return (x - 1.0).log().sum()

    view = torch.draw(steps, torch.tensor([2.0, 1.0]), values=True, times=True).picture.views[0]
    by_name = {step.name: view.data[step.outputs[0]] for step in view.steps}
    assert by_name["subtract"].shown.startswith("[1., 0.]") and not by_name["subtract"].bad
    assert by_name["log"].bad and by_name["subtract"].magnitude == 0.5
    assert sum(step.seconds for step in view.steps) > 0


def test_stages_of_the_compiler() -> None:
    def steps(x: Any) -> Any:
        return (x @ x).T.exp().sum()

    views = {view.name: view for view in torch.draw(steps, torch.ones(8, 8)).picture.views}
    assert list(views)[:2] == ["recorded", "primitive"] and list(views)[-1] == "kernels"
    boxes = {step.boxes for step in views["kernels"].steps if step.name in ("matmul", "exp", "sum")}
    assert all(path[-1].startswith("kernel ") for path in boxes)
    assert all(step.lines for step in views["kernels"].steps if step.name in ("matmul", "exp", "sum"))


def test_a_loop_of_the_graph_shows_its_body() -> None:
    def steps(x: Any) -> Any:
        return torch.scan(lambda h, row: ((h * row).tanh(), h), torch.ones(2), x)[0]

    view = torch.draw(steps, torch.ones(3, 2)).picture.views[1]
    inside = [step for step in view.steps if any("body 0" in box for box in step.boxes)]
    assert {"tanh", "multiply"} <= {step.name for step in inside}


def test_declared_graphs() -> None:
    with tf.Graph().as_default() as graph:
        with tf.name_scope("layer"):
            x = tf.placeholder(tf.float32, [None, 3], name="x")
            w = tf.Variable(tf.ones([3, 2]), name="w")
            y = tf.matmul(x, w, name="product")
        other = tf.constant(1.0, name="other")
        with tf.Session() as session:
            pictures = [torch.draw(thing).picture.views[0] for thing in (graph, session, y, y.op)]
    whole = pictures[0]
    product = next(step for step in whole.steps if step.attributes == "product")
    assert product.boxes == ("layer",) and product.name == "MatMul" and product.lines
    assert [whole.data[number].name for number in product.inputs] == ["layer/x:0", "layer/w:0"]
    assert len(pictures[1].steps) == len(whole.steps)
    variable = next(step for step in whole.steps if step.attributes == "VariableV2")
    assert variable.name == "w" and variable.boxes == ("layer",)
    above, again = (
        {step.attributes if step.inputs else step.name for step in picture.steps} for picture in pictures[2:]
    )
    assert {"x", "product"} <= above and other.op.name not in above and above == again
    with pytest.raises(ArgumentError, match="are of what runs"):
        torch.draw(graph, values=True)


def declared_network() -> Any:
    """The session of two layers and a loop, with an optimizer."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        with tf.variable_scope("encoder"):
            hidden = tf.layers.dense(x, 8, activation=tf.nn.relu, name="dense")
            _, hidden = tf.while_loop(
                lambda i, h: i < 3,
                lambda i, h: (i + 1, tf.layers.dense(h, 8, name="cell", reuse=tf.AUTO_REUSE)),
                [tf.constant(0), hidden],
            )
        with tf.name_scope("loss"):
            loss = tf.reduce_mean(tf.layers.dense(hidden, 3, name="out"))
        tf.train.AdamOptimizer().minimize(loss, name="step")
        tf.global_variables_initializer()
    return tf.Session(graph=graph)


def test_control_dependencies() -> None:
    drawing = torch.draw(declared_network())
    steps = drawing.picture.views[0].steps
    (group,) = [step for step in steps if step.name == "step"]
    assert {steps[number].name for number in group.after} == {"Assign", "ApplyAdam"} and not group.inputs
    assert drawing.to_dot().count("style=dashed") == sum(len(step.after) for step in steps)


def test_expressions() -> None:
    dy.renew_cg()
    model = dy.ParameterCollection()
    w = model.add_parameters((2, 3))
    view = torch.draw(dy.tanh(w * dy.inputVector([1.0, 2.0, 3.0]))).picture.views[0]
    assert "tanh" in names(view) and any("mat" in name for name in names(view))


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(ArgumentError, match="nothing stands above"):
        torch.draw(torch.ones(2).detach()._realise())
    with pytest.raises(ArgumentError, match="int cannot be drawn"):
        torch.draw(3)
    with pytest.raises(ArgumentError, match="what to write"):
        torch.draw(torch.ones(2) * 2.0, path="picture.bmp")


def test_exports(tmp_path: Path) -> None:
    drawing = torch.draw(Net(), torch.ones(3, 4), times=True)
    for name in ("net.html", "net.dot", "net.json"):
        drawing.save(tmp_path / name)
    dot = (tmp_path / "net.dot").read_text()
    assert dot.count("{") == dot.count("}") and 'label="body"' in dot and re.search(r"s0 -> s1 ", dot)
    found = json.loads((tmp_path / "net.json").read_text())
    graph = found["graphs"][0]
    ids = {node["id"] for node in graph["nodes"]}
    assert len(ids) == len(graph["nodes"])
    for node in graph["nodes"]:
        assert {edge["sourceNodeId"] for edge in node.get("incomingEdges", ())} <= ids
    assert any(node["namespace"] == "Net/body/1" and node["label"] == "linear" for node in graph["nodes"])
    overlay = drawing.to_overlays()["flops"]["recorded"]["results"]
    assert set(overlay) <= ids and overlay["s0"]["value"] == 2 * 3 * 4 * 8 + 3 * 8
    page = (tmp_path / "net.html").read_text()
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page) and "dagre" in page
    assert "srcdoc" in drawing._repr_html_()
    assert (ASSETS / "dagre.min.js.LEGAL.txt").read_text().count("Copyright")


def shown(drawing: Drawing, folder: Path, how: str = "") -> Callable[[str], int]:
    """Counts elements by class in what a browser makes of the page."""
    path = folder / "page.html"
    drawing.save(path)
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}"]
    command += ["--virtual-time-budget=20000", "--window-size=1400,900", "--dump-dom", f"file://{path}{how}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return lambda kind: len(re.findall(rf'class="{kind}[" ]', done.stdout))


@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
def test_a_browser_shows_the_same_structure(tmp_path: Path) -> None:
    drawing = torch.draw(Net(), torch.ones(3, 4), stages=False)
    count = shown(drawing, tmp_path)
    assert count("node step") == 3 and count("edge") == 2 and count("cluster") == 5
    count = shown(drawing, tmp_path, "#open&leaves")
    assert count("node datum") == 5 and count("edge") == 7
    count = shown(drawing, tmp_path, "#open&convention=values")
    assert count("node step") == 0 and count("node datum") == 4
    count = shown(drawing, tmp_path, "#open&convention=values&leaves")
    assert count("node step") == 0 and count("node datum") == 8


class Bottleneck(nn.Module):
    def __init__(self, given: int, planes: int, stride: int) -> None:
        super().__init__()
        sizes = [(given, planes, 1, 1, 0), (planes, planes, 3, stride, 1), (planes, 4 * planes, 1, 1, 0)]
        self.convolutions = nn.ModuleList([nn.Conv2d(*size, bias=False) for size in sizes])
        self.norms = nn.ModuleList([nn.BatchNorm2d(size[1]) for size in sizes])
        shortcut = nn.Conv2d(given, 4 * planes, 1, stride), nn.BatchNorm2d(4 * planes)
        self.shortcut = nn.Sequential(*(shortcut if given != 4 * planes else ()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for convolution, norm in zip(self.convolutions, self.norms):
            y = torch.relu(norm(convolution(y)))
        return torch.relu(y + self.shortcut(x))


def resnet_50() -> Drawing:
    """Four stages of 3, 4, 6 and 3 blocks, with few planes."""
    stages, given = [], 8
    for stage, count in enumerate((3, 4, 6, 3)):
        planes, blocks = 4 << stage, []
        for block in range(count):
            blocks.append(Bottleneck(given, planes, 2 if stage and not block else 1))
            given = 4 * planes
        stages.append(nn.Sequential(*blocks))
    stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, 10))
    return torch.draw(nn.Sequential(stem, *stages, head).eval(), torch.ones(1, 3, 64, 64), stages=False)


def transformer() -> Drawing:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return torch.draw(nn.TransformerEncoder(layer, 12).eval(), torch.ones(1, 4, 8), stages=False)


def tree() -> Drawing:
    collection = dy.ParameterCollection()
    weight, table = collection.add_parameters((4, 8)), collection.add_lookup_parameters((9, 4))

    def composed(node: Any) -> Any:
        if isinstance(node, int):
            return table[node]
        left, right = (composed(one) for one in node)
        return dy.tanh(weight * dy.concatenate([left, right]))

    return torch.draw(dy.squared_norm(composed(((0, 1), ((2, 3), 4)))), stages=False)


@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
@pytest.mark.parametrize(("build", "boxes"), [(resnet_50, 4 + 16 + 3), (transformer, 12), (tree, 0)])
def test_a_browser_shows_networks(build: Callable[[], Drawing], boxes: int, tmp_path: Path) -> None:
    drawing = build()
    count = shown(drawing, tmp_path)
    assert count("node box") == boxes and count("edge") >= boxes - 1
    count = shown(drawing, tmp_path, "#open")
    steps = drawing.picture.views[0].steps
    assert count("node box") == 0 and count("node step") == len(steps)
    assert count("cluster") == len({step.boxes[:k] for step in steps for k in range(1, len(step.boxes) + 1)})


@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
def test_a_browser_shows_many_operations_in_boxes(tmp_path: Path) -> None:
    view = View("many")
    last = view.add_datum("float32[]", 4, kind="input", name="x")
    for _ in range(5000):
        (last,) = view.add_step("add", [last], [("float32[]", 4)], boxes=("f",))
    count = shown(Drawing(Picture("many", [view])), tmp_path)
    assert 0 < count("node box") <= 120 and count("node step") == 0


def layers(count: int) -> View:
    """Blocks of ten operations in layers of five blocks, with shortcuts."""
    view = View("layers")
    made = [view.add_datum("float32[]", 4, kind="input", name="x")]
    for k in range(count):
        boxes = ("net", f"layer {k // 50}", f"block {k // 10 % 5}")
        name, inputs = ("relu", [made[-1]]) if k % 3 else ("add", [made[-1], made[-min(len(made), 4)]])
        made += view.add_step(name, inputs, [("float32[8,8]", 256)], boxes=boxes)
    return view


ZOOM = """(async () => {
  const frame = document.getElementById("frame"), shown = () => new Promise(requestAnimationFrame);
  for (let k = 0; k < 5; k++) await shown();  // until what was opened is painted
  const took = [];
  for (let k = 0; k < 20; k++) {
    const start = performance.now();
    frame.dispatchEvent(new WheelEvent("wheel", { deltaY: k % 2 ? 30 : -40, clientX: 400, clientY: 300 }));
    await shown();
    took.push(performance.now() - start);
  }
  return took.sort((a, b) => a - b);
})()"""


@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
def test_a_browser_is_smooth_at_5000_operations(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    Drawing(Picture("many", [layers(5000)])).save(page)
    nodes = "picture.visible().nodes.length"
    timed = "(() => { const start = performance.now(); %s; return performance.now() - start; })()"
    with Browser(page, tmp_path / "profile") as browser:
        assert browser.value(nodes) == 100  # its layers
        opened = browser.value(timed % "document.getElementById('open').click()")
        assert browser.value(nodes) == 5000 and opened < 20_000
        again = browser.value(timed % "picture.toggle('net\\u0001layer 7')")
        assert browser.value(nodes) == 4951 and again < 10_000
        for where in ("0", "document.getElementById('fit').click()"):
            browser.value(where)
            assert browser.value(ZOOM)[10] < 100  # milliseconds of the median frame
        assert 0 < browser.value("document.querySelectorAll('.node').length") <= 4951
        browser.screenshot(tmp_path / "page.png")
        assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
def test_nothing_on_a_page_overlaps(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    resnet_50().save(page)
    with Browser(page, tmp_path / "profile") as browser:
        browser.value("document.getElementById('open').click()")
        boxes = browser.value(
            "[...document.querySelectorAll('.node rect')].map((one) => "
            "['x', 'y', 'width', 'height'].map((name) => one[name].baseVal.value))"
        )
        legend = browser.value("document.getElementById('legend').textContent")
    assert len(boxes) == 191 and "operation" in legend
    for k, (x, y, width, height) in enumerate(boxes):
        for left, top, across, down in boxes[:k]:
            assert x + width <= left or left + across <= x or y + height <= top or top + down <= y


CROSSED = """(() => {
  const found = [], boxes = [...document.querySelectorAll(".node rect")].map((one) => one.getBBox());
  const within = (at, low, size) => at > low + 1 && at < low + size - 1;
  const inside = (p, box) => within(p.x, box.x, box.width) && within(p.y, box.y, box.height);
  for (const path of document.querySelectorAll(".edge path")) {
    for (let far = 0; far < path.getTotalLength(); far += 4) {
      const spot = path.getPointAtLength(far), box = boxes.findIndex((one) => inside(spot, one));
      if (box >= 0) { found.push(path.getAttribute("d")); break; }
    }
  }
  return found;
})()"""


@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
def test_lines_to_the_backward_pass_keep_out_of_other_nodes(tmp_path: Path) -> None:
    layers = [nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)) for _ in range(3)]
    page = tmp_path / "page.html"
    torch.draw(nn.Sequential(*layers), torch.ones(2, 4), backward=True, stages=False).save(page)
    with Browser(page, tmp_path / "profile") as browser:
        for state in ("close", "open"):
            browser.value(f"document.getElementById('{state}').click()")
            assert browser.value(CROSSED) == []


@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
def test_lines_that_pass_a_taller_box_keep_out_of_it(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    drawing = torch.draw(declared_network())
    drawing.save(page)
    with Browser(page, tmp_path / "profile") as browser:
        browser.value("document.getElementById('open').click()")
        assert browser.value(CROSSED) == []
        count = browser.value("document.querySelectorAll('.edge.control').length")
    assert count == sum(len(step.after) for step in drawing.picture.views[0].steps)


@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
def test_a_box_that_is_clicked_stays_where_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    resnet_50().save(page)
    top = "document.querySelector('.%s rect').getBoundingClientRect().top"
    with Browser(page, tmp_path / "profile") as browser:
        browser.value("document.getElementById('close').click()")
        before = browser.value(top % "node")
        browser.value("picture.toggle('Sequential')")
        assert abs(browser.value(top % "cluster") - before) < 1


def test_kernels_stand_in_the_boxes_of_their_modules() -> None:
    *_, view = torch.draw(Net(), torch.ones(3, 4), backward=True).picture.views
    found = {step.boxes for step in view.steps if step.boxes and step.boxes[-1].startswith("kernel ")}
    assert any(path[:2] == ("Net", "first") for path in found) and any(
        path[0] == "backward" for path in found
    )


def test_crowds_are_divided() -> None:
    paths = divided([("f",)] * 5000)
    beside: dict[tuple[str, ...], set[Any]] = {}
    for number, path in enumerate(paths):
        for depth in range(len(path)):
            beside.setdefault(path[:depth], set()).add(path[depth])
        beside.setdefault(path, set()).add(number)
    assert max(len(children) for children in beside.values()) <= 120
    assert all(path[0] == "f" for path in paths)


def test_a_drawing_changes_no_value() -> None:
    w = numpy.float32([1.0, 2.0])
    x = torch.from_numpy(w.copy()).requires_grad_()
    y = (x * 3.0).sum()
    torch.draw(y, backward=True, values=True)
    y.backward()
    assert x.grad.numpy().tolist() == [3.0, 3.0]


def test_fetches_and_compiled_functions() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        first, second = x * 2.0, tf.reduce_sum(x)
        drawing = torch.draw([first, second])
        assert drawing.picture.title == "fetches"
        assert {"x", "Sum"} < {step.name for step in drawing.picture.views[0].steps}
    x = torch.ones(2)

    def function(a: Any) -> Any:
        return a.sin() * 2

    compiled = torch.compile(function)
    compiled(x)
    for one in (compiled, function):
        assert names(torch.draw(one, x).picture.views[0]) == ["sin", "multiply"]


class Grown(nn.Module):
    """Joins what it computes to what it has computed."""

    def __init__(self) -> None:
        super().__init__()
        self.line, self.before = nn.Linear(3, 3), torch.zeros(1, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([self.before, self.line(x)])
        self.before = joined.detach()
        return joined * 2


def test_what_earlier_calls_made_is_an_input() -> None:
    net, x = Grown(), torch.ones(1, 3)
    net(x).tolist()
    torch.summary(net, x)  # whose hooks hold what the run has read
    told = torch.debug.story(net, x)
    assert names(told.view) == ["linear", "concatenate", "multiply"]
    shown = told.view.data[told.view.steps[1].inputs[0]]
    assert (shown.kind, shown.type) == ("input", "float32[3,3]")


class Interleaved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linears = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.norms = nn.ModuleDict({name: nn.LayerNorm(3) for name in ("first", "last")})
        self.heads = nn.ModuleList([nn.Linear(3, 2) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for linear, norm in zip(self.linears, self.norms.values()):
            x = torch.relu(norm(linear(x)))
        return self.heads[0](x) + self.heads[1](x)


@pytest.mark.parametrize("backward", (False, True))
def test_lists_of_modules_that_are_called_in_between_are_no_boxes(backward: bool) -> None:
    model = nn.Sequential(Interleaved())
    drawing = torch.draw(model, torch.ones(2, 3), backward=backward, stages=False)
    steps = [step for step in drawing.picture.views[0].steps if step.backward is backward]
    start = int(backward)
    paths = {".".join(step.boxes[start:]): step.boxes[start:] for step in steps}
    own = {path: boxes[-1] for path, boxes in paths.items() if "linears" in path or "norms" in path}
    assert set(own.values()) == {"linears.0", "linears.1", "norms.first", "norms.last"}
    assert paths["Sequential.0.heads.0"] == ("Sequential", "0", "heads", "0")
    assert all(drawing.picture.classes[path] in ("Linear", "LayerNorm") for path in own)
