"use strict";
// The replay. All that it shows was recorded; it only slows the clock down.
// A moment of a story is drawn from intervals, so any moment can be shown at once.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");

const REQUEST = 0, REPLY = 1, NOTIFICATION = 2;
const SETS_WATCH = 1, GOT_LOST = 2;
const OPS = { 1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 9: "sync", 12: "getChildren",
  14: "multi", 101: "setWatches", "-10": "connect", "-11": "close" };
const EVENTS = { 1: "created", 2: "deleted", 3: "data changed", 4: "children changed" };
const ERRORS = { "-4": "connection lost", "-101": "no such node", "-110": "node exists", "-111": "not empty" };

// ---- A story, made ready to be drawn ----

for (const s of data.stories) {
  s.watches = s.watches.map(([client, node, from, to]) => ({ client, node, from, to }));
  s.frames = s.frames.map(([client, kind, op, node, from, to, bytes, names, err, flags, at]) =>
    ({ client, kind, op, node, from, to, bytes, names, err, lost: (flags & GOT_LOST) > 0, watch: (flags & SETS_WATCH) > 0, at }));
  s.awake = awakenings(s);
}

// awakenings are the times from a notification to the reply of the look that it sets off.
function awakenings(story) {
  const since = new Map(), list = [];
  for (const f of story.frames) {
    if (f.kind === NOTIFICATION) since.set(f.client, f.to);
    if (f.kind === REPLY && since.has(f.client)) {
      list.push({ client: f.client, from: since.get(f.client), to: f.to });
      since.delete(f.client);
    }
  }
  return list;
}

const there = (x, t) => x.from <= t && (x.to < 0 || t < x.to);
const mood = (client, t) => client.moods.findLast((m) => m.at <= t)?.is ?? "idle";

// inside tells whether a client believes that it holds the lock.
const inside = (is) => is === "holds" || is === "reads" || is.startsWith("cut off");

// number is what a znode's name ends in, with R or W before it in a shared queue.
function number(node) {
  const digits = node.name.match(/(\d+)$/)?.[1];
  if (digits === undefined) return node.name;
  return (node.name.includes("__READ__") ? "R" : node.name.includes("__WRIT__") ? "W" : "") + Number(digits);
}

function target(story, f) {
  if (f.node >= 0) return "znode " + number(story.nodes[f.node]);
  return f.node === -1 ? "the directory" : "";
}

// sentence says what one frame is.
function sentence(story, f) {
  const name = story.clients[f.client].name, who = name[0].toUpperCase() + name.slice(1), lost = f.lost ? " It never arrives." : "";
  const what = OPS[f.op] ?? "request";
  switch (f.kind) {
    case REQUEST:
      if (f.op === 1 && f.node !== -1) return `${who} asks: create a znode.${lost}`;
      return `${who} asks: ${what} ${target(story, f)}${f.watch ? ", and watch it" : ""}.${lost}`;
    case NOTIFICATION:
      return `The server tells ${name}: ${target(story, f)}: ${EVENTS[f.op] ?? "event"}.${lost}`;
  }
  if (f.err !== 0) return `The server answers ${name}: ${what} failed: ${ERRORS[f.err] ?? "error " + f.err}.${lost}`;
  if (f.op === 12) return `The server answers ${name}: a list of ${f.names}.${lost}`;
  if (f.op === 1) return `The server answers ${name}: ${target(story, f)} is made.${lost}`;
  return `The server answers ${name}: ${what} ${target(story, f)} is done.${lost}`;
}

// ---- The clock: recorded microseconds, slowed down and with the idle times cut short ----

const REST = 1500; // after each phase, to read what it came to

// clock lays out the phases of the stories shown, in milliseconds of the show.
// All stories have the same slow motion, so the shorter one waits for the longer.
function clock(stories) {
  const phases = [];
  let at = 0;
  for (let p = 0; p < Math.max(...stories.map((s) => s.phases.length)); p++) {
    const bends = stories.map((s) => s.phases[p] && bend(s, s.phases[p]));
    const longest = Math.max(1, ...bends.map((b) => b?.length ?? 0));
    const lasts = Math.min(12000, Math.max(3000, longest * 2.5));
    phases.push({ at, lasts, bends, slow: lasts / longest });
    at += lasts + REST;
  }
  return {
    phases, length: at,
    phaseAt: (now) => Math.max(0, phases.findLastIndex((p) => p.at <= now)),
    // recorded is the moment of a story at a moment of the show.
    recorded(i, now) {
      const phase = phases[this.phaseAt(now)], bent = phase.bends[i];
      if (!bent) return stories[i].end;
      return bent.unbend((now - phase.at) / phase.slow);
    },
    // shown is the moment of the show for a recorded one.
    shown(i, t) {
      const p = Math.max(0, stories[i].phases.findLastIndex((p) => p.at <= t));
      return phases[p].at + phases[p].bends[i].bent(t) * phases[p].slow;
    },
  };
}

// bend cuts the idle times of a phase short: a gap of more than 0.3 ms counts by
// its logarithm.
function bend(story, phase) {
  const inside = (t) => t > phase.at && t < phase.over;
  const times = new Set([phase.at, phase.over]);
  for (const f of story.frames) for (const t of [f.from, f.to]) if (inside(t)) times.add(t);
  for (const n of story.nodes) for (const t of [n.from, n.to]) if (inside(t)) times.add(t);
  for (const c of story.clients) for (const m of c.moods) if (inside(m.at)) times.add(m.at);
  const t = [...times].sort((a, b) => a - b), b = [0];
  for (let i = 1; i < t.length; i++) {
    const gap = t[i] - t[i - 1];
    b.push(b[i - 1] + (gap <= 300 ? gap : 300 + 120 * Math.log2(gap / 300)));
  }
  const through = (x, xs, ys) => {
    if (x >= xs.at(-1)) return ys.at(-1);
    const i = Math.max(1, xs.findIndex((v) => v > x)), share = (x - xs[i - 1]) / (xs[i] - xs[i - 1] || 1);
    return ys[i - 1] + Math.max(0, share) * (ys[i] - ys[i - 1]);
  };
  return { length: b.at(-1), unbend: (x) => through(x, b, t), bent: (x) => through(x, t, b) };
}

// ---- The stage: one story, drawn at one moment ----

class Stage {
  constructor(root) {
    this.root = root;
    this.canvas = root.querySelector("canvas");
    this.ink = this.canvas.getContext("2d");
  }

  show(story) {
    this.story = story;
    const step = data.steps.find((s) => s.key === story.step);
    this.root.querySelector(".step").textContent = `Step ${step.key}: ${step.name}`;
    this.root.querySelector(".lesson").textContent = step.lesson;
  }

  // size fits the drawing to its place.
  size() {
    const box = this.canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    this.color = Object.fromEntries(["ink", "soft", "paper", "line", "request", "reply", "notification", "holder", "bad", "awake"]
      .map((name) => [name, style.getPropertyValue("--" + name).trim()]));
    const side = Math.min(box.width, box.height);
    this.many = this.story.clients.length > 40;
    this.small = side < 420;
    this.middle = { x: box.width / 2, y: box.height / 2 };
    this.tiny = side < 300;
    this.dot = this.many ? Math.max(1, Math.min(4, side / this.story.clients.length * 1.2)) : this.tiny ? 10 : this.small ? 13 : 17;
    const outer = Math.max(40, side / 2 - this.dot - (this.tiny ? 16 : this.small ? 20 : 24));
    this.radius = { hub: outer * 0.31, node: outer * 0.62, client: outer };
  }

  at(slot, radius) {
    const angle = 2 * Math.PI * slot / Math.max(3, this.story.slots) - Math.PI / 2;
    return { x: this.middle.x + radius * Math.cos(angle), y: this.middle.y + radius * Math.sin(angle) };
  }
  clientAt(i) { return this.at(this.story.clients[i].slot, this.radius.client); }
  nodeAt(i) {
    const n = this.story.nodes[i];
    return n.slot < 0 ? { x: this.middle.x, y: this.middle.y + this.radius.hub * 0.45 } : this.at(n.slot, this.radius.node);
  }

  // draw draws a moment; focus is the frame that a step has stopped at, if any.
  draw(t, focus) {
    const { ink, story } = this;
    this.t = t;
    ink.clearRect(0, 0, this.canvas.width, this.canvas.height);
    ink.lineCap = "round";
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    this.directory();
    const watches = story.watches.filter((w) => there(w, t));
    if (this.many) this.rays(watches);
    else watches.forEach((w) => this.watch(w));
    story.nodes.forEach((n, i) => there(n, t) && this.node(n, i));
    const awake = new Set(story.awake.filter((a) => there(a, t)).map((a) => a.client));
    story.clients.forEach((c, i) => this.client(c, i, awake.has(i)));
    for (const f of story.frames) {
      if (f.from > t) { if (f.at > t + 5e6) break; continue; }
      if (t < f.to) this.frame(f, focus);
    }
  }

  directory() {
    const { ink, color, middle, radius } = this;
    const plain = this.story.step === "1";
    if (!plain) {
      ink.strokeStyle = color.line;
      ink.lineWidth = this.many ? 1 : 2;
      circle(ink, middle, radius.node);
      ink.stroke();
    }
    circle(ink, middle, radius.hub);
    ink.fillStyle = color.paper;
    ink.fill();
    ink.strokeStyle = color.ink;
    ink.lineWidth = 2;
    ink.stroke();
    const size = Math.min(14, radius.hub / 3.6);
    this.text("ZooKeeper", middle.x, middle.y - (plain ? radius.hub * 0.4 : size * 0.6), color.ink, size, "600");
    if (!plain) this.text("/lock", middle.x, middle.y + size * 0.8, color.soft, size);
  }

  text(words, x, y, fill, size, weight = "400") {
    const { ink } = this;
    ink.font = `${weight} ${size}px system-ui, "DejaVu Sans", sans-serif`;
    ink.fillStyle = fill;
    ink.fillText(words, x, y);
  }

  // rays are the watches of a crowd: in one stroke, for there are very many.
  rays(watches) {
    const { ink, color } = this;
    ink.strokeStyle = color.soft;
    ink.lineWidth = 0.6;
    ink.globalAlpha = 0.3;
    ink.beginPath();
    for (const w of watches) {
      const from = this.clientAt(w.client), to = w.node >= 0 ? this.nodeAt(w.node) : toward(this.middle, from, this.radius.hub);
      ink.moveTo(from.x, from.y);
      ink.lineTo(to.x, to.y);
    }
    ink.stroke();
    ink.globalAlpha = 1;
  }

  // watch is an arrow from a client to what it watches. One on the directory, or
  // on a znode of the client's own, goes past the client's znode in an arc.
  watch(w) {
    const { ink, color } = this;
    const from = this.clientAt(w.client), to = w.node >= 0 ? this.nodeAt(w.node) : this.middle;
    const own = w.node < 0 || this.story.nodes[w.node].owner === w.client;
    const tip = toward(to, from, w.node < 0 ? this.radius.hub + 2 : this.chip().h / 2 + 6);
    const far = Math.hypot(from.x - tip.x, from.y - tip.y) || 1, out = own ? this.chip().w * (w.node < 0 ? 1.35 : 1) : 0;
    const bend = { x: (from.x + tip.x) / 2 - (from.y - tip.y) / far * out, y: (from.y + tip.y) / 2 + (from.x - tip.x) / far * out };
    const start = toward(from, bend, this.dot + 2);
    ink.strokeStyle = ink.fillStyle = color.soft;
    ink.lineWidth = 1.5;
    ink.setLineDash([5, 4]);
    ink.beginPath();
    ink.moveTo(start.x, start.y);
    ink.quadraticCurveTo(bend.x, bend.y, tip.x, tip.y);
    ink.stroke();
    ink.setLineDash([]);
    arrowhead(ink, bend, tip, 8);
  }

  chip() { return this.tiny ? { w: 22, h: 14 } : this.small ? { w: 28, h: 18 } : { w: 38, h: 22 }; }

  node(n, i) {
    const { ink, color } = this;
    const p = this.nodeAt(i), owner = this.clientAt(n.owner);
    const held = inside(mood(this.story.clients[n.owner], this.t)) && !this.story.nodes.some((m, j) => j < i && m.owner === n.owner && there(m, this.t));
    ink.strokeStyle = held ? color.holder : color.line;
    ink.lineWidth = this.many ? 0.5 : held ? 2.5 : 1.2;
    if (!this.many || held) line(ink, n.slot < 0 ? toward(this.middle, owner, this.radius.hub) : p, owner); // whose it is
    if (this.many) {
      ink.fillStyle = held ? color.holder : color.soft;
      circle(ink, p, held ? 4 : this.dot);
      ink.fill();
      return;
    }
    const { w, h } = this.chip();
    ink.beginPath();
    ink.roundRect(p.x - w / 2, p.y - h / 2, w, h, 4);
    ink.fillStyle = held ? color.holder : color.paper;
    ink.fill();
    ink.strokeStyle = held ? color.holder : color.ink;
    ink.lineWidth = 1.5;
    ink.stroke();
    this.text(number(n), p.x, p.y + 1, held ? color.paper : color.ink, this.tiny ? 9 : this.small ? 11 : 13, "600");
  }

  client(c, i, awake) {
    const { ink, color } = this;
    const p = this.clientAt(i), is = mood(c, this.t);
    const holds = inside(is);
    const bad = is === "crashed" || is.startsWith("cut off") || is.startsWith("told") || is.startsWith("got");
    const size = this.many && (holds || awake) ? Math.max(3, this.dot) : this.dot;
    if (this.many && !holds && !awake && is === "idle") return;
    circle(ink, p, size);
    ink.fillStyle = holds ? color.holder : awake ? color.awake : color.paper;
    ink.fill();
    ink.strokeStyle = bad ? color.bad : holds ? color.holder : color.ink;
    ink.lineWidth = this.many ? 0.8 : holds || bad ? 3 : 1.5;
    if (is === "idle") ink.strokeStyle = color.line;
    ink.stroke();
    if (this.many && !holds) return;
    if (holds && !this.many) { // a second ring, for eyes that see no colour
      circle(ink, p, size + 4);
      ink.lineWidth = 1.5;
      ink.stroke();
    }
    if (is === "crashed") cross(ink, p, size * 1.5, color.bad);
    const short = c.name.replace(/^client /, ""), initial = short.length > 2 ? short[0].toUpperCase() + (short.match(/\d/) ?? "") : short;
    if (!this.many) this.text(initial, p.x, p.y + 1, holds ? color.paper : is === "idle" ? color.soft : color.ink, this.tiny ? 10 : this.small ? 12 : 14, "600");
    let words = awake && !holds ? "awake" : is === "idle" ? "" : is.replace(/^cut off.*/, "cut off, holds?").replace(/^told.*/, "told: lost");
    if (short.length > 2) words = (short + (words && ", " + words)).trim();
    if (!words) return;
    const below = p.y >= this.middle.y - 1;
    const y = p.y + (below ? 1 : -1) * (size + (this.tiny ? 8 : this.small ? 11 : 14));
    const half = words.length * (this.small ? 2.9 : 3.4), edge = this.middle.x * 2;
    this.text(words, Math.min(edge - half - 2, Math.max(half + 2, p.x)), y, bad ? color.bad : holds ? color.holder : color.soft, this.small ? 10 : 12, holds || bad || awake ? "700" : "400");
  }

  // frame is a frame on its way: a request is an arrow, a reply a disc, a
  // notification a diamond with a !.
  frame(f, focus) {
    const { ink, color } = this;
    const client = this.clientAt(f.client), hub = toward(this.middle, client, this.radius.hub);
    const [a, b] = f.kind === REQUEST ? [client, hub] : [hub, client];
    let share = Math.min(1, Math.max(0, (this.t - f.from) / Math.max(1, f.to - f.from)));
    if (still.matches) share = 0.5;
    if (f.lost) share = Math.min(share, 0.5);
    const side = f.kind === REQUEST ? 1 : -1, length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const shift = this.many ? 0 : 7 * side;
    const p = { x: a.x + (b.x - a.x) * share + shift * Math.abs(b.y - a.y) / length, y: a.y + (b.y - a.y) * share + shift * Math.abs(b.x - a.x) / length };
    const size = this.many ? 2.2 : this.tiny ? 4.5 : this.small ? 6 : 8;
    ink.globalAlpha = focus && f !== focus ? 0.25 : 1;
    ink.fillStyle = ink.strokeStyle = f.kind === REQUEST ? color.request : f.kind === REPLY ? color.reply : color.notification;
    ink.lineWidth = 2;
    if (this.many) {
      ink.fillRect(p.x - size / 2, p.y - size / 2, size, size);
    } else if (f.kind === REQUEST) {
      arrowhead(ink, a, { x: p.x + (b.x - a.x) / length * size, y: p.y + (b.y - a.y) / length * size }, size * 2);
    } else if (f.kind === REPLY) {
      circle(ink, p, size * 0.8);
      ink.fill();
    } else {
      ink.beginPath();
      for (const [dx, dy] of [[0, -1], [1, 0], [0, 1], [-1, 0]]) ink.lineTo(p.x + dx * size * 1.4, p.y + dy * size * 1.4);
      ink.fill();
      this.text("!", p.x, p.y + 0.5, color.paper, size * 1.6, "800");
    }
    if (f.lost) cross(ink, p, size * 1.6, color.bad);
    if (!this.many && (f === focus || this.story.clients.length <= 5 || this.lonely(f))) {
      const words = f.kind === NOTIFICATION ? "changed!" : f.kind === REPLY ? (f.err ? ERRORS[f.err] ?? "error" : f.op === 12 ? `${f.names} names` : "done") : OPS[f.op];
      this.label(words ?? "", p);
    }
    ink.globalAlpha = 1;
  }

  lonely(f) { return this.story.frames.filter((g) => g.from <= this.t && this.t < g.to).length <= 2; }

  label(words, p) {
    const { ink, color } = this;
    ink.font = `600 ${this.small ? 10 : 12}px system-ui, "DejaVu Sans", sans-serif`;
    const w = ink.measureText(words).width + 8;
    const x = p.x + (p.x > this.middle.x + 20 ? -11 - w / 2 : 11 + w / 2); // towards the middle
    ink.fillStyle = color.paper;
    ink.fillRect(x - w / 2, p.y - 9, w, 18);
    this.text(words, x, p.y + 1, color.ink, this.small ? 10 : 12, "600");
  }

  // tally counts what has passed since the phase began.
  tally(phase) {
    let notifications = 0, requests = 0, bytes = 0;
    for (const f of this.story.frames) {
      const passed = f.at >= phase.at && f.at <= this.t && f.op !== -10 && f.op !== -11;
      if (!passed) continue;
      if (f.kind === REQUEST) requests++;
      else bytes += f.bytes;
      if (f.kind === NOTIFICATION) notifications++;
    }
    return { notifications, requests, bytes };
  }
}

function circle(ink, p, radius) { ink.beginPath(); ink.arc(p.x, p.y, radius, 0, 2 * Math.PI); }
function line(ink, a, b) { ink.beginPath(); ink.moveTo(a.x, a.y); ink.lineTo(b.x, b.y); ink.stroke(); }
function toward(from, to, distance) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  return { x: from.x + (to.x - from.x) * distance / length, y: from.y + (to.y - from.y) * distance / length };
}
function arrowhead(ink, from, tip, size) {
  const angle = Math.atan2(tip.y - from.y, tip.x - from.x);
  ink.beginPath();
  ink.moveTo(tip.x, tip.y);
  for (const turn of [2.6, -2.6]) ink.lineTo(tip.x + size * Math.cos(angle + turn), tip.y + size * Math.sin(angle + turn));
  ink.fill();
}
function cross(ink, p, size, stroke) {
  ink.strokeStyle = stroke;
  ink.lineWidth = 3;
  line(ink, { x: p.x - size / 2, y: p.y - size / 2 }, { x: p.x + size / 2, y: p.y + size / 2 });
  line(ink, { x: p.x + size / 2, y: p.y - size / 2 }, { x: p.x - size / 2, y: p.y + size / 2 });
}

// ---- The player ----

const stages = [new Stage($("left")), new Stage($("right"))];
const player = { now: 0, playing: false, speed: 1, stages: [], clock: null, moments: [], focus: null };

// choose puts one story on the stages.
function choose(id, left, right) {
  const story = data.titles.find((s) => s.id === id);
  const find = (step) => data.stories.find((s) => s.id === id && s.step === step);
  if (!find(left)) left = story.pair[0] ?? story.steps[0];
  if (right !== "" && (!find(right) || right === left)) right = story.pair[1] ?? "";
  options($("story"), data.titles.map((s) => [s.id, s.title]), id);
  options($("first"), story.steps.map((k) => [k, stepName(k)]), left);
  options($("second"), [["", "nothing"], ...story.steps.filter((k) => k !== left).map((k) => [k, stepName(k)])], right);
  $("watch-for").textContent = story.watch;
  $("stages").classList.toggle("pair", right !== "");
  $("right").hidden = right === "";
  player.stages = stages.slice(0, right === "" ? 1 : 2);
  stages[0].show(find(left));
  if (right !== "") stages[1].show(find(right));
  player.clock = clock(player.stages.map((s) => s.story));
  player.moments = player.stages.flatMap((stage, i) => stage.story.frames.map((f) =>
    ({ at: player.clock.shown(i, (f.from + f.to) / 2), stage: i, frame: f }))).sort((a, b) => a.at - b.at);
  $("slider").max = Math.round(player.clock.length);
  phaseButtons();
  resize();
  const second = player.clock.phases[1];
  pause();
  go(second ? second.at - REST / 2 : 0);
  history.replaceState(null, "", `#${id}/${left}/${right}`);
}

const stepName = (key) => `Step ${key}: ${data.steps.find((s) => s.key === key).name}`;

function options(select, list, chosen) {
  select.replaceChildren(...list.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

function phaseButtons() {
  const phases = player.stages[0].story.phases, { clock } = player;
  $("phases").replaceChildren(...phases.map((p, i) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = `${i + 1}. ${p.title}`;
    b.onclick = () => go(clock.phases[i].at);
    return b;
  }));
}

function resize() {
  for (const s of player.stages) s.size();
  render();
}

// go shows a moment of the show; frame is the one that a step has stopped at.
function go(now, focus = null) {
  player.now = Math.min(player.clock.length, Math.max(0, now));
  player.focus = focus;
  if (player.now >= player.clock.length) pause();
  render();
}

function render() {
  const { clock, now, focus } = player;
  const p = clock.phaseAt(now), phase = clock.phases[p];
  const over = now >= phase.at + phase.lasts;
  player.stages.forEach((stage, i) => {
    const of = stage.story.phases[Math.min(p, stage.story.phases.length - 1)];
    stage.draw(clock.recorded(i, now), focus?.stage === i ? focus.frame : null);
    const own = phase.bends[i], done = over || (own && (now - phase.at) / phase.slow >= own.length);
    set(stage.root.querySelector(".caption"), done && of.sum ? of.sum : of.title + ".");
    const c = stage.tally(of);
    for (const name of ["notifications", "requests", "bytes"]) {
      set(stage.root.querySelector(`[data-count=${name}]`), c[name].toLocaleString("en"));
    }
    set(stage.root.querySelector(".at"), time(stage.t - of.at));
    set(stage.root.querySelector(".detail"), focus?.stage === i ? sentence(stage.story, focus.frame) : " ");
  });
  if (!player.playing) table();
  $("slider").value = now;
  $("slider").setAttribute("aria-valuetext", `${player.stages[0].story.phases[p]?.title ?? ""}, ${Math.round(100 * now / clock.length)} percent of the show`);
  [...$("phases").children].forEach((b, i) => b.setAttribute("aria-current", i === p ? "step" : "false"));
}

const time = (us) => us < 1e5 ? (us / 1000).toFixed(1) + " ms" : us < 1e6 ? Math.round(us / 1000) + " ms" : (us / 1e6).toFixed(2) + " s";

// set writes a text only if it is new: a live region speaks at each change.
function set(element, text) { if (element.textContent !== text) element.textContent = text; }

// table says in words what is drawn.
function table() {
  for (const stage of player.stages) {
    const { story, t } = stage, rows = story.clients.slice(0, 40).map((c, i) => {
      const own = story.nodes.filter((n) => n.owner === i && there(n, t)).map(number).join(", ");
      const watched = story.watches.filter((w) => w.client === i && there(w, t)).map((w) => target(story, w)).join(", ");
      return [c.name, mood(c, t), own || "none", watched || "nothing"];
    });
    stage.root.querySelector("tbody").replaceChildren(...rows.map((cells) => {
      const tr = document.createElement("tr");
      tr.append(...cells.map((text, i) => Object.assign(document.createElement(i ? "td" : "th"), { textContent: text, ...(i ? {} : { scope: "row" }) })));
      return tr;
    }));
  }
}

function play() {
  if (player.now >= player.clock.length) player.now = 0;
  player.playing = true;
  player.focus = null;
  label();
  let last;
  const tick = (time) => {
    if (!player.playing) return;
    const passed = last === undefined ? 0 : time - last;
    last = time;
    go(player.now + passed * player.speed);
    if (player.playing) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

function pause() {
  player.playing = false;
  label();
}

function label() {
  $("play").textContent = player.playing ? "❚❚ Pause" : "▶ Play";
}

function toggle() {
  if (!player.playing) return play();
  pause();
  render();
}

// step goes to the next frame of the record, or the one before.
function step(by) {
  pause();
  const { moments, now, focus } = player;
  let i = focus ? moments.findIndex((m) => m.frame === focus.frame && m.stage === focus.stage) + by
    : by > 0 ? moments.findIndex((m) => m.at > now) : moments.findLastIndex((m) => m.at < now);
  if (i < 0 && by > 0 || i >= moments.length) return go(player.clock.length);
  if (i < 0) return go(0);
  go(moments[i].at, moments[i]);
}

function skip(by) {
  const { phases } = player.clock, p = player.clock.phaseAt(player.now) + by;
  go(p < 0 ? 0 : p >= phases.length ? player.clock.length : phases[p].at);
}

$("play").onclick = toggle;
$("back").onclick = () => step(-1);
$("forth").onclick = () => step(1);
$("start").onclick = () => { pause(); go(0); };
$("speed").onchange = (e) => { player.speed = Number(e.target.value); };
$("slider").oninput = (e) => { pause(); go(Number(e.target.value)); };
for (const id of ["story", "first", "second"]) $(id).onchange = () => choose($("story").value, $("first").value, $("second").value);
$("story").onchange = () => { const s = data.titles.find((s) => s.id === $("story").value); choose(s.id, s.pair[0], s.pair[1] ?? ""); };

const keys = { " ": toggle, ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => go(0),
  End: () => go(player.clock.length), PageDown: () => skip(1), PageUp: () => skip(-1) };
document.addEventListener("keydown", (e) => {
  const inReplay = e.target === document.body || $("replay").contains(e.target);
  const busy = e.target.matches("select, summary") || e.key === " " && e.target.matches("button, a");
  if (!inReplay || busy || e.altKey || e.ctrlKey || e.metaKey || !keys[e.key]) return;
  e.preventDefault();
  keys[e.key]();
});

// ---- The page around it ----

for (const b of document.querySelectorAll("[data-evidence]")) b.onclick = () => {
  const dialog = $(b.dataset.evidence), frames = dialog.querySelector(".scroll");
  dialog.showModal();
  frames?.scrollTo(0, frames.scrollHeight); // the proof is at the end
};

$("theme").onclick = () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  resize();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", resize);
addEventListener("resize", resize);
addEventListener("beforeprint", resize);

const [id, left, right] = decodeURIComponent(location.hash.slice(1)).split("/");
const wanted = data.titles.find((s) => s.id === id) ?? data.titles[0];
choose(wanted.id, wanted.id === id ? left : wanted.pair[0], wanted.id === id ? right : wanted.pair[1] ?? "");
