// Shows a picture: what is visible follows from the boxes that are open and from what counts as a node.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const world = byId("world"), svg = byId("canvas");
  const SVG = "http://www.w3.org/2000/svg", MANY = 600, LABELLED = 80, AT_FIRST = 40, LEAST_SCALE = 0.3;
  const state = { view: 0, convention: "operations", direction: "all", colour: "kind", leaves: false, open: new Set(), selected: null };
  const view = () => data.views[state.view];
  const keyOf = (path, length) => path.slice(0, length).join("\u0001");

  // The outermost closed box on a path, or null where all are open.
  function closedBox(path) {
    for (let k = 1; k <= path.length; k++) if (!state.open.has(keyOf(path, k))) return keyOf(path, k);
    return null;
  }
  const shownStep = (step) => state.direction === "all" || (state.direction === "backward") === step.backward;

  function visible() {
    const { steps, data: values } = view(), nodes = new Map(), edges = new Map(), readers = new Map();
    const add = (id, path, kind, label, member) => {
      if (!nodes.has(id)) nodes.set(id, { id, path, kind, label, members: new Set() });
      nodes.get(id).members.add(member);
      return id;
    };
    const link = (from, to, label, backward) => {
      if (from === to) return;
      const id = from + "\u0002" + to;
      if (!edges.has(id)) edges.set(id, { from, to, labels: [], backward });
      edges.get(id).labels.push(label);
    };
    const stepNode = (step) => {
      const box = closedBox(step.boxes);
      if (box === null) return add("s" + step.id, step.boxes, "step", step.name, step);
      const path = box.split("\u0001");
      return add("b" + box, path.slice(0, -1), "box", path[path.length - 1], step);
    };
    const steps_ = steps.filter(shownStep);
    for (const step of steps_) for (const one of step.inputs) {
      if (!readers.has(one)) readers.set(one, []);
      readers.get(one).push(step);
    }
    // What comes from outside and is read in one closed box alone is inside that.
    const folded = (value) => {
      const boxes = new Set((readers.get(value.id) || []).map((step) => closedBox(step.boxes)));
      return boxes.size === 1 && !boxes.has(null);
    };
    const hidden = (value) => value.producer < 0 && (!state.leaves || value.kind === "constant" || folded(value));
    const nameOf = (value) => value.name || (value.producer < 0 ? value.kind : value.type);
    // A value stands in the box of what makes it; one from outside beside what reads it, if that is one box.
    const valueNode = (value) => {
      if (value.producer >= 0) {
        const maker = steps[value.producer], box = closedBox(maker.boxes);
        if (box !== null) return stepNode(maker);
        return add("d" + value.id, maker.boxes, "datum", nameOf(value), value);
      }
      const using = readers.get(value.id) || [], path = using.length === 1 ? using[0].boxes : [];
      let depth = 0;
      while (depth < path.length && state.open.has(keyOf(path, depth + 1))) depth++;
      return add("d" + value.id, path.slice(0, depth), "datum", nameOf(value), value);
    };
    for (const step of steps_) {
      if (state.convention !== "values") stepNode(step);
      for (const number of step.inputs) {
        const value = values[number];
        if (value.producer >= 0 && !shownStep(steps[value.producer])) continue;
        if (state.convention === "operations") {
          if (hidden(value)) continue;
          link(value.producer >= 0 ? stepNode(steps[value.producer]) : valueNode(value), stepNode(step), value.type, step.backward);
        } else if (state.convention === "values") {
          if (value.producer < 0 && (value.kind === "constant" || folded(value))) continue;
          for (const made of step.outputs) link(valueNode(value), valueNode(values[made]), step.name, step.backward);
        } else if (!hidden(value)) {
          link(valueNode(value), stepNode(step), "", step.backward);
        }
      }
      for (const made of step.outputs) {
        if (state.convention === "values") valueNode(values[made]);
        if (state.convention === "both") link(stepNode(step), valueNode(values[made]), "", step.backward);
      }
    }
    for (const node of nodes.values()) node.members = [...node.members];
    return { nodes: [...nodes.values()], edges: [...edges.values()] };
  }

  function total(node, what) {
    let sum = 0, most = 0;
    for (const one of node.members) {
      if (what === "magnitude") {
        const held = one.outputs ? one.outputs.map((k) => view().data[k]) : [one];
        for (const value of held) most = Math.max(most, value.bad ? Infinity : value.magnitude);
      } else sum += one[what] || 0;
    }
    return what === "magnitude" ? most : sum;
  }
  const hue = (text) => { let h = 7; for (const c of text) h = (h * 31 + c.charCodeAt(0)) % 360; return h; };
  function paints(nodes) {
    const mode = state.colour;
    if (mode === "kind") return (node) => node.kind === "box" ? "#e9eef5" : node.kind === "datum" ? "#fffbe8" : `hsl(${hue(node.label)} 62% 88%)`;
    if (mode === "direction") return (node) => node.members.every((one) => one.backward) && node.kind !== "datum" ? "#fbe3c4" : "#d8e8fb";
    const amounts = nodes.map((node) => total(node, mode)), most = Math.max(...amounts.filter(Number.isFinite), 0) || 1;
    return (node) => {
      const amount = total(node, mode);
      if (!Number.isFinite(amount)) return "#e0402a";
      const part = mode === "magnitude" ? Math.log1p(amount) / Math.log1p(most) : amount / most;
      return `hsl(${210 - 190 * part} ${30 + 55 * part}% ${94 - 34 * part}%)`;
    };
  }

  function element(name, attributes, parent, text) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }
  const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

  function laidOut(found) {
    const graph = new dagre.graphlib.Graph({ compound: true });
    const many = found.nodes.length > MANY;
    graph.setGraph({ rankdir: "TB", nodesep: 16, ranksep: 34, marginx: 12, marginy: 12, ranker: many ? "longest-path" : "network-simplex" });
    graph.setDefaultEdgeLabel(() => ({}));
    const clusters = new Map();
    for (const node of found.nodes) {
      node.text = cut(node.kind === "box" ? `${node.label} (${node.members.length})` : node.label, 34);
      graph.setNode(node.id, { width: node.text.length * 6.8 + 18, height: 26 });
      for (let k = 1; k <= node.path.length; k++) {
        const key = "c" + keyOf(node.path, k);
        if (!clusters.has(key)) {
          clusters.set(key, { key: keyOf(node.path, k), label: node.path[k - 1] });
          graph.setNode(key, {});
          if (k > 1) graph.setParent(key, "c" + keyOf(node.path, k - 1));
        }
      }
      if (node.path.length) graph.setParent(node.id, "c" + keyOf(node.path, node.path.length));
    }
    for (const edge of found.edges) graph.setEdge(edge.from, edge.to);
    dagre.layout(graph);
    return { graph, clusters };
  }

  function show() {
    const found = visible(), { graph, clusters } = laidOut(found), paint = paints(found.nodes);
    world.textContent = "";
    for (const [id, cluster] of clusters) {
      const at = graph.node(id), g = element("g", { class: "cluster" }, world);
      element("rect", { x: at.x - at.width / 2, y: at.y - at.height / 2, width: at.width, height: at.height, rx: 6 }, g);
      const name = element("text", { x: at.x - at.width / 2 + 6, y: at.y - at.height / 2 + 13 }, g, cluster.label);
      name.addEventListener("click", () => toggle(cluster.key));
    }
    for (const edge of found.edges) {
      const points = graph.edge(edge.from, edge.to).points;
      const g = element("g", { class: edge.backward ? "edge backward" : "edge" }, world);
      const path = points.map((p, k) => `${k ? "L" : "M"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join("");
      element("path", { d: path, "marker-end": "url(#arrow)" }, g);
      const label = edge.labels.length > 1 && new Set(edge.labels).size > 1 ? `${edge.labels.length} values` : edge.labels[0];
      if (label && found.edges.length < LABELLED) {
        const p = points[Math.floor(points.length / 2)];
        element("text", { x: p.x, y: p.y }, g, label);
      }
    }
    for (const node of found.nodes) {
      const at = graph.node(node.id), g = element("g", { class: `node ${node.kind}`, "data-id": node.id }, world);
      element("rect", { x: at.x - at.width / 2, y: at.y - 13, width: at.width, height: 26, rx: node.kind === "datum" ? 13 : 5, fill: paint(node) }, g);
      element("text", { x: at.x, y: at.y }, g, node.text);
      element("title", {}, g, node.label);
      if (node.id === state.selected) g.classList.add("selected");
      g.addEventListener("click", () => { if (node.kind === "box") toggle(node.id.slice(1)); else select(node); });
    }
    byId("count").textContent = `${found.nodes.length} nodes of ${view().steps.length} operations`;
    size = graph.graph();
    mark();
    return found;
  }

  function toggle(key) {
    if (state.open.has(key)) for (const one of [...state.open]) { if (one === key || one.startsWith(key + "\u0001")) state.open.delete(one); }
    else state.open.add(key);
    show();
  }
  function select(node) {
    state.selected = node.id;
    for (const g of world.querySelectorAll(".node")) g.classList.toggle("selected", g.dataset.id === node.id);
    const one = node.members[0], rows = [];
    const row = (name, value) => { if (value || value === 0) rows.push([name, value]); };
    const value = (number) => { const d = view().data[number]; return `${d.name ? d.name + " " : ""}${d.type}${d.shown ? " = " + d.shown : ""}`; };
    if (node.kind === "step") {
      row("line", one.lines.join("\n")); row("source", one.source); row("attributes", one.attributes);
      row("reads", one.inputs.map(value).join("\n")); row("makes", one.outputs.map(value).join("\n"));
      row("time", one.seconds ? `${(one.seconds * 1e6).toFixed(2)} us` : ""); row("flops", one.flops.toLocaleString("en")); row("bytes", one.nbytes.toLocaleString("en"));
      row("in", one.boxes.join(" / ")); row("direction", one.backward ? "backward" : "forward");
    } else {
      row("type", one.type); row("kind", one.kind); row("bytes", one.nbytes.toLocaleString("en")); row("holds", one.shown);
      if (one.producer >= 0) { const maker = view().steps[one.producer]; row("made by", maker.name); row("line", maker.lines.join("\n")); row("source", maker.source); }
    }
    const panel = byId("details");
    panel.textContent = "";
    panel.appendChild(document.createElement("h2")).textContent = node.label;
    const list = panel.appendChild(document.createElement("dl"));
    for (const [name, text] of rows) {
      list.appendChild(document.createElement("dt")).textContent = name;
      const held = list.appendChild(document.createElement("dd"));
      held.style.whiteSpace = "pre-wrap";
      held.textContent = text;
    }
  }
  function mark() {
    const wanted = byId("find").value.trim().toLowerCase();
    for (const g of world.querySelectorAll(".node")) g.classList.toggle("found", wanted !== "" && g.querySelector("title").textContent.toLowerCase().includes(wanted));
  }

  // Moving and zooming
  let size = { width: 100, height: 100 }, at = { x: 0, y: 0, scale: 1 }, drag = null;
  const place = () => world.setAttribute("transform", `translate(${at.x} ${at.y}) scale(${at.scale})`);
  function fit() {
    const box = svg.getBoundingClientRect(), whole = Math.min(box.width / (size.width || 1), box.height / (size.height || 1), 1.4) * 0.97;
    const scale = Math.max(whole, LEAST_SCALE);
    at = { x: (box.width - size.width * scale) / 2, y: Math.max(8, (box.height - size.height * scale) / 2), scale };
    place();
  }
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY / 500), box = svg.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    at = { x: x - (x - at.x) * factor, y: y - (y - at.y) * factor, scale: at.scale * factor };
    place();
  }, { passive: false });
  svg.addEventListener("pointerdown", (event) => { drag = { x: event.clientX - at.x, y: event.clientY - at.y }; });
  addEventListener("pointermove", (event) => { if (drag) { at.x = event.clientX - drag.x; at.y = event.clientY - drag.y; place(); } });
  addEventListener("pointerup", () => { drag = null; });

  function allBoxes() {
    const found = new Set();
    for (const step of view().steps) for (let k = 1; k <= step.boxes.length; k++) found.add(keyOf(step.boxes, k));
    return found;
  }
  // The outermost boxes are open, level by level, as long as not much is to be seen.
  function start() {
    state.open = new Set();
    for (;;) {
      const before = new Set(state.open), boxes = visible().nodes.filter((node) => node.kind === "box");
      for (const box of boxes) state.open.add(box.id.slice(1));
      if (!boxes.length) break;
      if (visible().nodes.length > AT_FIRST) { state.open = before; break; }
    }
    show();
    fit();
  }
  for (const [k, one] of data.views.entries()) {
    const option = byId("stage").appendChild(document.createElement("option"));
    option.value = k;
    option.textContent = `${one.name} (${one.steps.length})`;
  }
  byId("stage").addEventListener("change", (event) => { state.view = Number(event.target.value); start(); });
  for (const name of ["convention", "direction", "colour"]) byId(name).addEventListener("change", (event) => { state[name] = event.target.value; show(); });
  byId("leaves").addEventListener("change", (event) => { state.leaves = event.target.checked; show(); });
  byId("open").addEventListener("click", () => { state.open = allBoxes(); show(); fit(); });
  byId("close").addEventListener("click", () => { state.open = new Set(); show(); fit(); });
  byId("fit").addEventListener("click", fit);
  byId("find").addEventListener("input", mark);
  window.picture = { visible, state, show, toggle, fit, allBoxes, start };
  const wanted = new URLSearchParams(location.hash.slice(1));
  for (const name of ["convention", "direction", "colour"]) if (wanted.has(name)) { state[name] = wanted.get(name); byId(name).value = state[name]; }
  if (wanted.has("stage")) { state.view = Number(wanted.get("stage")); byId("stage").value = state.view; }
  state.leaves = byId("leaves").checked = wanted.has("leaves");
  start();
  if (wanted.has("open")) { state.open = allBoxes(); show(); fit(); }
})();
