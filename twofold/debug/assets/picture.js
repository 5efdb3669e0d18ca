// Shows a picture: what is visible follows from the boxes that are open and from what counts as a node.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const world = byId("world"), svg = byId("canvas"), frame = byId("frame");
  const SVG = "http://www.w3.org/2000/svg", MANY = 600, CULLED = 2000, LABELLED = 80, AT_FIRST = 40, FEW = 4, MOST_AT_FIRST = 120, LEAST_SCALE = 0.85, LEAST_OPEN = 0.4, FAR = 0.3, TITLE = 12, MARGIN = 10, ROUND = 14;
  const state = { view: 0, convention: "operations", direction: "all", colour: "kind", leaves: false, open: new Set(), selected: null };
  const view = () => data.views[state.view];
  const keyOf = (path, length) => path.slice(0, length).join("\u0001");

  // The last part of a path; of a module with its class.
  function titleOf(path) {
    const own = path[path.length - 1], kind = data.classes[(path[0] === "backward" ? path.slice(1) : path).join(".")];
    return kind && kind !== own ? `${own}: ${kind}` : own;
  }
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
    const link = (from, to, label, backward, control = false) => {
      if (from === to) return;
      const id = from + "\u0002" + to + (control ? "\u0002" : "");
      if (!edges.has(id)) edges.set(id, { from, to, labels: [], backward, control });
      edges.get(id).labels.push(label);
    };
    const stepNode = (step) => {
      const box = closedBox(step.boxes);
      if (box === null) return add("s" + step.id, step.boxes, "step", step.name, step);
      const path = box.split("\u0001");
      return add("b" + box, path.slice(0, -1), "box", titleOf(path), step);
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
          if (value.kind === "input" ? folded(value) : value.producer < 0 && hidden(value)) continue;
          for (const made of step.outputs) link(valueNode(value), valueNode(values[made]), step.name, step.backward);
        } else if (!hidden(value)) {
          link(valueNode(value), stepNode(step), "", step.backward);
        }
      }
      for (const number of state.convention === "values" ? [] : step.after) {
        if (shownStep(steps[number])) link(stepNode(steps[number]), stepNode(step), "", step.backward, true);
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
  const amountsOf = (nodes) => nodes.map((node) => total(node, state.colour)).filter((one) => Number.isFinite(one) && one > 0);
  // Where an amount lies between the least and the most, by its logarithm; over eight powers of ten at most.
  function scaleOf(nodes) {
    const amounts = amountsOf(nodes), most = Math.max(...amounts, 0) || 1, least = Math.max(Math.min(...amounts, most), most * 1e-8);
    const part = (amount) => least === most ? 1 : Math.max(0, Math.log(Math.max(amount, least * 1e-3) / least) / Math.log(most / least));
    return { least, most, part: (amount) => amount > 0 ? Math.min(part(amount), 1) : 0 };
  }
  const STOPS = [[238, 244, 251], [246, 197, 107], [211, 66, 43]], BAD = "#8e1b8e";
  function shade(part) {
    const k = part < 0.5 ? 0 : 1, rest = 2 * part - k;
    return `rgb(${STOPS[k].map((from, c) => Math.round(from + (STOPS[k + 1][c] - from) * rest)).join(",")})`;
  }
  const hue = (text) => { let h = 7; for (const c of text) h = (h * 31 + c.charCodeAt(0)) % 360; return h; };
  function paints(nodes) {
    const mode = state.colour;
    if (mode === "kind") return (node) => node.kind === "box" ? "#e9eef5" : node.kind === "datum" ? "#fffbe8" : `hsl(${hue(node.label)} 62% 88%)`;
    if (mode === "direction") return (node) => node.members.every((one) => one.backward) && node.kind !== "datum" ? "#fbe3c4" : "#d8e8fb";
    const scale = scaleOf(nodes);
    return (node) => { const amount = total(node, mode); return Number.isFinite(amount) ? shade(scale.part(amount)) : BAD; };
  }

  function element(name, attributes, parent, text) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }
  const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

  // What is inside of each open box: nodes and boxes with the edges between them, each on the level where its ends part.
  function levelsOf(found) {
    const levels = new Map([["", { key: "", path: [], inside: new Map(), edges: new Map() }]]), paths = new Map();
    for (const node of found.nodes) {
      node.text = cut(node.kind === "box" ? `${node.label} (${node.members.length})` : node.label, 34);
      paths.set(node.id, node.path);
      for (let k = 1; k <= node.path.length; k++) {
        const key = keyOf(node.path, k);
        if (levels.has(key)) continue;
        levels.set(key, { key, path: node.path.slice(0, k), inside: new Map(), edges: new Map() });
        levels.get(keyOf(node.path, k - 1)).inside.set("c" + key, levels.get(key));
      }
      levels.get(keyOf(node.path, node.path.length)).inside.set(node.id, node);
    }
    for (const edge of found.edges) {
      const from = paths.get(edge.from), to = paths.get(edge.to), several = new Set(edge.labels).size > 1;
      let depth = 0;
      while (depth < from.length && depth < to.length && from[depth] === to[depth]) depth++;
      const end = (path, id) => depth < path.length ? "c" + keyOf(path, depth + 1) : id;
      const ends = [end(from, edge.from), end(to, edge.to)], level = levels.get(keyOf(from, depth)), id = ends.join("\u0002");
      Object.assign(edge, { fromPath: from, toPath: to, depth });
      edge.label = found.edges.length < LABELLED ? (several ? `${edge.labels.length} values` : edge.labels[0]) : "";
      if (!level.edges.has(id)) level.edges.set(id, { ends, label: edge.label, count: 0 });
      edge.way = level.edges.get(id);
      if (edge.way.count++ && !edge.control && edge.way.label !== edge.label) edge.way.label = edge.label && `${edge.way.count} edges`;
    }
    return levels;
  }

  const painted = [];  // what is drawn, and where
  const drawnNodes = () => painted.map((one) => one.g).filter((g) => g.classList.contains("node"));
  const placed = new Map();  // what is inside of a box, by its sizes and edges: equal layers are arranged once
  function arranged(sizes, ways) {
    const graph = new dagre.graphlib.Graph(), ranker = sizes.length > MANY ? "longest-path" : "network-simplex";
    graph.setGraph({ rankdir: "TB", nodesep: 16, edgesep: 8, ranksep: 34, marginx: MARGIN, marginy: MARGIN, ranker });
    sizes.forEach(([width, height], k) => graph.setNode(String(k), { width, height }));
    for (const [from, to, weight, letters] of ways) {
      graph.setEdge(from, to, { weight, ...(letters ? { width: letters * 6.1 + 6, height: 12, labelpos: "r", labeloffset: 4 } : {}) });
    }
    dagre.layout(graph);
    return graph;
  }

  // Places each level by itself, from the innermost, so that the time grows with the number of nodes.
  function place(level) {
    for (const one of level.inside.values()) if (one.inside) place(one);
    level.ids = new Map([...level.inside.keys()].map((id, k) => [id, String(k)]));
    const sizes = [...level.inside.values()].map((one) => one.inside ? [one.width, one.height] : [one.text.length * 6.8 + 18, 26]);
    const ways = [...level.edges.values()].map(({ ends, label, count }) => [...ends.map((id) => level.ids.get(id)), Math.min(count, 4), label.length]);
    const key = JSON.stringify([sizes, ways]);
    if (!placed.has(key)) placed.set(key, arranged(sizes, ways));
    const graph = placed.get(key);
    const { width, height } = graph.graph(), named = level.path.length ? titleOf(level.path).length * 7.2 + 14 : 0;
    Object.assign(level, { graph, left: Math.max(0, (named - width) / 2), width: Math.max(width, named), height: height + (named ? TITLE : 0) });
  }

  // Where everything stands, by the corner of its level.
  function spread(level, x, y, spots) {
    const dx = x + level.left, dy = y + (level.path.length ? TITLE : 0), moved = (p) => ({ ...p, x: p.x + dx, y: p.y + dy });
    Object.assign(level, { x, y, rows: new Map() });
    for (const [id, one] of level.inside) {
      const at = moved(level.graph.node(level.ids.get(id))), row = level.rows.get(at.y) || level.rows.set(at.y, { half: 0 }).get(at.y);
      row.half = Math.max(row.half, at.height / 2);
      spots.set(id, at);
      if (one.inside) spread(one, at.x - one.width / 2, at.y - one.height / 2, spots);
    }
    for (const way of level.edges.values()) {
      const { points, x: labelX, y: labelY } = level.graph.edge(...way.ends.map((id) => level.ids.get(id)));
      const [from, to] = way.ends.map((id) => spots.get(id)), inner = points.slice(1, -1).map(moved);
      way.points = [attached(from, inner[0] || to), ...inner, attached(to, inner[inner.length - 1] || from)];
      way.rows = level.rows;
      way.spot = labelX === undefined ? null : moved({ x: labelX, y: labelY });
    }
  }

  // Where a line to a point leaves a node: at its lower or upper border.
  function attached({ x, y, width, height }, to) {
    const room = Math.max(0, width / 2 - 8);
    return { x: Math.min(x + room, Math.max(x - room, to.x)), y: y + (to.y < y ? -height : height) / 2 };
  }

  // From a node to the border of the outermost box around it, the lower one for the sign 1: between the rows, and along
  // the left side of boxes that are left, and the right side of those that are entered.
  function through(levels, spots, path, id, depth, leaves, sign) {
    const { x, y, height } = spots.get(id), points = [{ x, y: y + sign * height / 2 }];
    for (let k = path.length; k > depth; k--) {
      const level = levels.get(keyOf(path, k)), at = spots.get(k < path.length ? "c" + keyOf(path, k + 1) : id);
      const last = points[points.length - 1].x, border = sign > 0 ? level.y + level.height : level.y, rows = [...level.rows.keys()];
      if (at.y === (sign > 0 ? Math.max : Math.min)(...rows)) points.push({ x: last, y: border });
      else {
        const side = leaves ? level.x + MARGIN / 2 : level.x + level.width - MARGIN / 2, between = at.y + sign * (level.rows.get(at.y).half + MARGIN);
        points.push({ x: last, y: between }, { x: side, y: between }, { x: side, y: border });
      }
    }
    return points;
  }

  function laidOut(found) {
    const levels = levelsOf(found), whole = levels.get(""), spots = new Map();
    place(whole);
    spread(whole, 0, 0, spots);
    levels.delete("");
    for (const edge of found.edges) {
      const points = [...edge.way.points], { from, to, fromPath, toPath, depth } = edge;
      const [above, below] = edge.way.ends.map((id) => spots.get(id).y), down = above < below ? 1 : -1;
      if (fromPath.length > depth) points.splice(0, 1, ...through(levels, spots, fromPath, from, depth, true, down));
      if (toPath.length > depth) points.splice(-1, 1, ...through(levels, spots, toPath, to, depth, false, -down).reverse());
      // past the taller boxes of its row before it goes aside
      edge.way.ends.forEach((id, k) => {
        const at = spots.get(id), { half } = edge.way.rows.get(at.y), first = k ? edge.way.points[edge.way.points.length - 2] : edge.way.points[1];
        if (half <= at.height / 2 + 1 || edge.way.points.length < 3) return;
        const index = points.indexOf(first), beside = points[k ? index + 1 : index - 1];
        points.splice(k ? index + 1 : index, 0, { x: beside.x, y: at.y + (k ? -down : down) * half });
      });
      edge.points = points;
      // between two rows that follow each other no node stands: a line goes there without a detour to its label
      const crosses = fromPath.length > depth || toPath.length > depth;
      const middle = crosses && edge.way.points.length === 3 && edge.way.spot ? points.indexOf(edge.way.points[1]) : 0;
      if (middle > 0) {
        const [low, high] = [points[middle - 1].x, points[middle + 1].x].sort((a, b) => a - b), { x, y } = points[middle];
        points[middle] = { x: Math.min(high, Math.max(low, x)), y };
      }
    }
    return { levels, spots, size: whole };
  }

  // Straight from corner to corner, which are round.
  function curve(points) {
    const at = (p) => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`, last = points.length - 1;
    const towards = (from, to) => {
      const length = Math.hypot(to.x - from.x, to.y - from.y) || 1, part = Math.min(ROUND, length / 2) / length;
      return at({ x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part });
    };
    let path = `M${at(points[0])}`;
    for (let k = 1; k < last; k++) path += `L${towards(points[k], points[k - 1])}Q${at(points[k])} ${towards(points[k], points[k + 1])}`;
    return `${path}L${at(points[last])}`;
  }

  // What the colours and lines mean.
  function explain(nodes) {
    const legend = byId("legend"), short = (amount) => amount >= 1e4 || amount < 0.01 ? amount.toExponential(1) : String(+amount.toPrecision(3));
    legend.textContent = "";
    const entry = (swatch, text) => {
      const row = legend.appendChild(document.createElement("div"));
      if (swatch) { const made = row.appendChild(document.createElement("i")); made.className = swatch.name || ""; made.style.background = swatch.paint || ""; }
      row.append(text);
    };
    const kinds = new Set(nodes.map((node) => node.kind));
    if (state.colour === "kind") {
      if (kinds.has("step")) entry({ paint: "linear-gradient(90deg,#f6d5d5,#d5f6dc,#d8d5f6)" }, "operation: equal ones have one colour");
      if (kinds.has("box")) entry({ paint: "#e9eef5", name: "box" }, "closed box, with the operations in it");
      if (kinds.has("datum")) entry({ paint: "#fffbe8", name: "datum" }, "value");
    } else if (state.colour === "direction") {
      entry({ paint: "#d8e8fb" }, "forward");
      entry({ paint: "#fbe3c4" }, "backward");
    } else {
      const { least, most } = scaleOf(nodes), seconds = state.colour === "seconds";
      const said = (amount) => seconds ? `${short(amount * 1e6)} us` : short(amount);
      const gradient = `linear-gradient(90deg,${[0, 0.5, 1].map(shade).join(",")})`;
      if (amountsOf(nodes).length) entry({ paint: gradient, name: "scale" }, `${said(least)} to ${said(most)}`);
      else entry(null, "nothing is known of it: see draw(times=True, values=True)");
      if (nodes.some((node) => !Number.isFinite(total(node, state.colour)))) entry({ paint: BAD }, "not finite");
    }
    if (view().steps.some((step) => step.backward)) entry({ name: "line" }, "read in the backward pass");
    if (view().steps.some((step) => step.after.length)) entry({ name: "dashes" }, "runs after (control dependency)");
  }

  function show() {
    const found = visible(), { levels, spots, size: whole } = laidOut(found), paint = paints(found.nodes), told = new Set();
    world.textContent = "";
    painted.length = 0;
    const paintedAt = (g, { x, y, width, height }) => painted.push({ g, left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 });
    for (const cluster of levels.values()) {
      const at = spots.get("c" + cluster.key), g = element("g", { class: "cluster" }, world);
      element("rect", { x: at.x - at.width / 2, y: at.y - at.height / 2, width: at.width, height: at.height, rx: 6 }, g);
      paintedAt(g, at);
    }
    for (const edge of found.edges) {
      const g = element("g", { class: `edge${edge.backward ? " backward" : ""}${edge.control ? " control" : ""}` }, world);
      element("path", { d: curve(edge.points), "marker-end": edge.backward ? "url(#back)" : "url(#arrow)" }, g);
      if (edge.way.label && edge.way.spot && !told.has(edge.way)) element("text", edge.way.spot, g, edge.way.label);
      told.add(edge.way);
      const xs = edge.points.map((p) => p.x), ys = edge.points.map((p) => p.y);
      painted.push({ g, left: Math.min(...xs) - 1, right: Math.max(...xs) + 200, top: Math.min(...ys) - 1, bottom: Math.max(...ys) + 1 });
    }
    for (const cluster of levels.values()) {
      const at = spots.get("c" + cluster.key), g = element("g", { class: "name" }, world);
      element("text", { x: at.x - at.width / 2 + 6, y: at.y - at.height / 2 + 13 }, g, titleOf(cluster.path));
      g.addEventListener("click", () => toggle(cluster.key));
      paintedAt(g, at);
    }
    for (const node of found.nodes) {
      const at = spots.get(node.id), g = element("g", { class: `node ${node.kind}`, "data-id": node.id }, world);
      element("rect", { x: at.x - at.width / 2, y: at.y - 13, width: at.width, height: 26, rx: node.kind === "datum" ? 13 : 5, fill: paint(node) }, g);
      element("text", { x: at.x, y: at.y }, g, node.text);
      element("title", {}, g, node.label);
      paintedAt(g, at);
      if (node.id === state.selected) g.classList.add("selected");
      g.addEventListener("click", () => { if (node.kind === "box") toggle(node.id.slice(1)); else select(node); });
    }
    explain(found.nodes);
    byId("count").textContent = `${found.nodes.length} nodes of ${view().steps.length} operations`;
    size = whole;
    where = spots;
    mark();
    cull();
    return found;
  }

  // What is clicked stays where it is.
  function toggle(key) {
    const corner = () => { const one = where.get("b" + key) || where.get("c" + key); return one && { x: one.x, y: one.y - one.height / 2 }; };
    const before = corner();
    if (state.open.has(key)) for (const one of [...state.open]) { if (one === key || one.startsWith(key + "\u0001")) state.open.delete(one); }
    else state.open.add(key);
    show();
    const after = corner();
    if (!before || !after) return;
    at = { ...at, x: at.x + (before.x - after.x) * at.scale, y: at.y + (before.y - after.y) * at.scale };
    draw();
  }
  function select(node) {
    state.selected = node.id;
    for (const g of drawnNodes()) g.classList.toggle("selected", g.dataset.id === node.id);
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
    for (const g of drawnNodes()) g.classList.toggle("found", wanted !== "" && g.querySelector("title").textContent.toLowerCase().includes(wanted));
  }

  // Moving and zooming
  let size = { width: 100, height: 100 }, where = new Map(), at = { x: 0, y: 0, scale: 1 }, drag = null;
  let drawn = at, waiting = 0;
  const draw = () => {
    drawn = { ...at };
    svg.style.transform = "";
    world.setAttribute("transform", `translate(${at.x} ${at.y}) scale(${at.scale})`);
    svg.classList.toggle("far", at.scale < FAR);
    cull();
  };
  // Of much, only what is near to what is seen is in the document.
  function cull() {
    if (painted.length < CULLED) return;
    const { width, height } = frame.getBoundingClientRect(), left = (-width - at.x) / at.scale, top = (-height - at.y) / at.scale;
    const right = left + 3 * width / at.scale, bottom = top + 3 * height / at.scale;
    const near = painted.filter((one) => one.left < right && one.right > left && one.top < bottom && one.bottom > top);
    world.replaceChildren(...near.map((one) => one.g));
  }
  // Much is moved as an image, and drawn anew when it rests.
  function glide() {
    if (world.childElementCount < MANY) return draw();
    const factor = at.scale / drawn.scale;
    svg.style.transform = `translate(${at.x - drawn.x * factor}px, ${at.y - drawn.y * factor}px) scale(${factor})`;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 150);
  }
  function fit(least) {
    const box = frame.getBoundingClientRect(), whole = Math.min(box.width / (size.width || 1), box.height / (size.height || 1), 1.4) * 0.97;
    const scale = Math.max(whole, least || 0);
    const room = box.width - size.width * scale, seen = [...where.values()].filter((one) => one.y * scale < box.height).map((one) => one.x).sort((a, b) => a - b);
    // What is wider than the window shows the middle of what stands at the top of it.
    const x = room > 16 ? room / 2 : Math.min(8, Math.max(room - 8, box.width / 2 - (seen[seen.length >> 1] || 0) * scale));
    at = { x, y: Math.max(8, (box.height - size.height * scale) / 2), scale };
    draw();
  }
  frame.addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY / 500), box = frame.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    at = { x: x - (x - at.x) * factor, y: y - (y - at.y) * factor, scale: at.scale * factor };
    glide();
  }, { passive: false });
  frame.addEventListener("pointerdown", (event) => { drag = { x: event.clientX - at.x, y: event.clientY - at.y }; });
  addEventListener("pointermove", (event) => { if (drag) { at.x = event.clientX - drag.x; at.y = event.clientY - drag.y; glide(); } });
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
      if (visible().nodes.length > (boxes.length < FEW ? MOST_AT_FIRST : AT_FIRST)) { state.open = before; break; }
    }
    show();
    fit(LEAST_SCALE);
    offer();
  }
  // Only what there is to choose between.
  function offer() {
    const steps = view().steps, known = { direction: steps.some((step) => step.backward), seconds: steps.some((step) => step.seconds),
      flops: steps.some((step) => step.flops), magnitude: view().data.some((one) => one.magnitude || one.bad) };
    byId("stage").parentElement.hidden = data.views.length < 2;
    byId("direction").parentElement.hidden = !known.direction;
    for (const option of byId("colour").options) option.hidden = option.value in known && !known[option.value];
  }
  for (const [k, one] of data.views.entries()) {
    const option = byId("stage").appendChild(document.createElement("option"));
    option.value = k;
    option.textContent = `${one.name} (${one.steps.length})`;
  }
  byId("stage").addEventListener("change", (event) => { state.view = Number(event.target.value); start(); });
  for (const name of ["convention", "direction"]) byId(name).addEventListener("change", (event) => { state[name] = event.target.value; show(); fit(LEAST_SCALE); });
  byId("colour").addEventListener("change", (event) => { state.colour = event.target.value; show(); });
  byId("leaves").addEventListener("change", (event) => { state.leaves = event.target.checked; show(); fit(LEAST_SCALE); });
  byId("open").addEventListener("click", () => { state.open = allBoxes(); show(); fit(LEAST_OPEN); });
  byId("close").addEventListener("click", () => { state.open = new Set(); show(); fit(LEAST_SCALE); });
  byId("fit").addEventListener("click", () => fit());
  byId("find").addEventListener("input", mark);
  window.picture = { visible, state, show, toggle, fit, allBoxes, start };
  const wanted = new URLSearchParams(location.hash.slice(1));
  for (const name of ["convention", "direction", "colour"]) if (wanted.has(name)) { state[name] = wanted.get(name); byId(name).value = state[name]; }
  if (wanted.has("stage")) { state.view = Number(wanted.get("stage")); byId("stage").value = state.view; }
  state.leaves = byId("leaves").checked = wanted.has("leaves");
  start();
  if (wanted.has("open")) { state.open = allBoxes(); show(); fit(LEAST_OPEN); }
})();
