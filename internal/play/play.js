// The page of make play. It holds no truth of its own: all that it shows comes from
// the service, and what is clicked goes there. Only the flight of a frame is
// stretched, so that an eye can follow.

const WORDS = {
  choose: "an opening …",
  nothing: "nothing",
  clients: (n, max) => `${n} of at most ${max} clients`,
  none: "No clients yet. Add one, or choose an opening.",
  held: (n) => n ? `${n} held` : "",
  left: "left", right: "right",
  is: "is", isLeft: "left", isRight: "right",
  chosen: (name) => `${name[0].toUpperCase()}${name.slice(1)}`,
  empty: "empty",
  nameOf: (owner) => owner < 0 ? "of nobody here" : `client ${owner}`,
  store: "The store",
  storeEmpty: "nothing written yet",
  bears: (n) => `token ${n}`,
  token: (n) => n ? `greatest token ${n}` : "",
  write: (w) => `${w.ok ? "✓" : "✗"} client ${w.client}${w.token ? `, token ${w.token}` : ""}: ${w.text}`,
  building: "Your lock is being built …",
  gone: "The service does not answer. Is make play still running? The page goes on by itself when it does.",
  armed: { losecreate: "create reply will be lost", losedelete: "delete reply will be lost", delaylist: "next list will be late" },
  quick: { idle: ["lock", "Lock"], waits: ["giveup", "Give up"], holds: ["unlock", "Unlock"], reads: ["unlock", "Unlock"] },
  server: (n) => `server ${n}`, leader: "leader",
  states: { up: "up", killed: "killed", stopped: "stopped", cut: "cut off" },
  serverFaults: { kill: "Kill", stop: "Stop", cut: "Cut off", mend: "Mend" },
  znodes: "none", watches: "nothing",
};

const $ = (id) => document.getElementById(id);
const { token } = document.body.dataset;
const FLIGHT = 300, LAG = 700; // milliseconds: of a frame on the page, and at most behind the wire

// ---- A board: what the service has told of one lock ----

// A LiveStage draws what stands now. Its clock is the page's, in milliseconds.
class LiveStage extends Stage {
  // labels: where clients ask again and again, names would lie on each other.
  labels(f) { return this.flying().length <= 8 && this.flying().filter((g) => g.client === f.client).length <= 2; }

  // along is the share of its way that a frame has gone. One that is held on the
  // wire waits on the way.
  along(f) {
    const age = this.t - f.from;
    return f.to === Infinity ? 0.6 * (1 - Math.exp(-age / FLIGHT)) : f.share + (1 - f.share) * age / (f.to - f.from);
  }
}

class Board {
  constructor(i) {
    this.i = i;
    this.root = $("board" + i);
    this.stage = new LiveStage(this.root, 1.7);
  }

  // take takes what is new: all of a lock that has been laid, or null, or what has changed.
  take(news) {
    const laid = news && "lock" in news;
    if (!news || laid) this.is = news;
    this.root.hidden = !this.is;
    if (!news) return;
    if (laid) {
      this.width = 0; // its drawing has no size yet
      this.nodes = new Map();
      this.watches = new Map();
      this.flights = new Map(); // what is still told as on its way
      this.log = new Map();
      this.story = { step: news.lock, awake: [], frames: [] };
      this.stage.show(this.story, news.name, news.lesson);
    }
    Object.assign(this.is, news);
    const chapter = this.root.querySelector(".chapter");
    chapter.hidden = !this.is.step;
    chapter.href = this.chapter();
    const told = (what) => Object.entries(news[what] ?? {});
    this.clients = this.is.rows.map((r, i) => ({ name: `client ${i}`, slot: 2 * i, moods: [{ at: 0, is: r.is }] }));
    for (const [i, n] of told("nodes")) n.to < 0 ? this.nodes.set(i, n) : this.nodes.delete(i);
    for (const [i, row] of told("watches")) row[3] < 0 ? this.watches.set(i, watch(row)) : this.watches.delete(i);
    this.arrange();
    for (const [i, f] of told("frames").map(([i, row]) => [i, frame(row)])) if (!laid || f.to < 0) this.fly(i, f);
    for (const [i, l] of told("log")) this.log.set(Number(i), { ...l, i: Number(i), side: this.i }).delete(i - 200);
  }

  chapter() { return `/chapter/${this.is.step}?token=${token}`; }

  // lines are the log's, newest first.
  lines() { return [...this.log.values()].sort((a, b) => b.i - a.i); }

  // arrange makes of what stands the story that the stage draws.
  arrange() {
    const { story } = this, places = new Map();
    story.clients = this.clients;
    story.slots = 2 * this.clients.length;
    story.nodes = [...this.nodes].map(([i, n], at) => { places.set(Number(i), at); return { ...n, from: 0 }; });
    story.watches = [...this.watches.values()].filter((w) => w.node < 0 || places.has(w.node))
      .map((w) => ({ ...w, node: places.get(w.node) ?? -1, from: 0 }));
  }

  // fly lets a frame fly. No frame leaves before those have arrived that had arrived
  // when it left; but the page is never far behind the wire.
  fly(i, told) {
    if (told.client < 0) return;
    const now = performance.now(), { story } = this;
    let f = this.flights.get(i);
    if (!f) {
      let from = now;
      for (const g of story.frames) if (g.arrived >= 0 && g.arrived <= told.from) from = Math.max(from, g.to);
      f = { ...told, from: Math.min(from, now + LAG), to: Infinity, share: 0, left: told.from };
      story.frames.push(f);
      this.flights.set(i, f);
      if (f.kind === REPLY) this.wake(f.client, f.from + FLIGHT);
    }
    if (told.to < 0) return;
    this.flights.delete(i);
    if (now > f.from) { // it was held: the rest of its way
      this.stage.t = now;
      f.share = this.stage.along(f);
      f.from = now;
    }
    Object.assign(f, { to: f.from + FLIGHT, arrived: told.to, lost: told.lost, err: told.err, names: told.names });
    if (f.kind === NOTIFICATION && !f.lost) story.awake.push({ client: f.client, from: f.to, to: -1 });
  }

  // wake ends the time in which a client is awake: it has looked.
  wake(client, at) {
    for (const a of this.story.awake) if (a.client === client && a.to < 0) a.to = Math.max(at, a.from + FLIGHT);
  }

  // draw draws the moment, and tells whether the next one will look different.
  draw(now) {
    const { story } = this;
    if (!this.width) return false;
    story.frames = story.frames.filter((f) => now < f.to);
    story.awake = story.awake.filter((a) => this.mood(a.client) === "waits" && (a.to < 0 || now < a.to)); // a holder need not look
    this.stage.draw(now, null);
    return story.frames.some((f) => f.to !== Infinity || now - f.from < 5 * FLIGHT) || story.awake.some((a) => a.to > 0);
  }

  // words writes all that stands around the drawing.
  words() {
    const { root, is } = this;
    for (const name of ["notifications", "requests", "writes", "bytes"]) set(root.querySelector(`[data-count=${name}]`), is.counters[name].toLocaleString("en"));
    set(root.querySelector("[data-count=action]"), is.counters.action || "–");
    const mine = root.querySelector(".build");
    mine.hidden = !is.complaint && !is.building;
    set(mine, is.building ? WORDS.building : is.complaint);
    fill(root.querySelector(".banners"), is.banners.map((b) => make("p", {}, make("strong", {}, b.text), " ",
      is.step ? make("a", { href: this.chapter(), target: "_blank" }, b.property) : b.property)));
    const queue = [...this.nodes.values()].sort((m, n) => m.name.match(/\d*$/)[0] - n.name.match(/\d*$/)[0] || m.from - n.from);
    fill(root.querySelector(".ls ol"), queue.length ? queue.map((n) => make("li", { className: inside(this.mood(n.owner)) ? "in" : "" }, n.name.replace(/^_c_[0-9a-f]+-/, "_c_…-").replace(/0{6,}(?=\d)/, "…"), make("b", {}, ` ${WORDS.nameOf(n.owner)}`))) : [make("li", {}, WORDS.empty)]);
    const { token: greatest, log: writes } = is.store;
    fill(root.querySelector(".store"), [make("b", {}, WORDS.store), " ", writes?.length ? WORDS.token(greatest) : WORDS.storeEmpty,
      ...(writes ?? []).slice(0, 3).map((w) => make("p", { className: w.ok ? "ok" : "refused" }, WORDS.write(w)))]);
    if (!root.querySelector("details").open) return;
    const { clients, nodes, watches } = this.story;
    fill(root.querySelector("tbody"), clients.map((c, i) => row(c.name, this.mood(i),
      nodes.filter((n) => n.owner === i).map(number).join(", ") || WORDS.znodes,
      watches.filter((w) => w.client === i).map((w) => target(this.story, w)).join(", ") || WORDS.watches,
      is.rows[i]?.process ?? "", is.rows[i]?.line ?? "", is.rows[i]?.token || "–")));
  }

  mood(i) { return this.clients[i]?.moods[0].is ?? "idle"; }
}

// ---- Writing into the page ----

function make(tag, properties, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

const row = (first, ...rest) => make("tr", {}, make("th", { scope: "row" }, first), ...rest.map((text) => make("td", {}, String(text))));

// set and fill write only what is new: a live region speaks at each change, and what
// is under the mouse or has the focus must stay.
function set(e, text) { if (e.textContent !== text) e.textContent = text; }
function fill(e, children) {
  const old = [...e.childNodes];
  children = children.map((c) => typeof c === "string" ? document.createTextNode(c) : c);
  const at = e.contains(document.activeElement) ? { ...document.activeElement.dataset } : null;
  children.forEach((c, i) => { if (!old[i]) e.append(c); else if (!old[i].isEqualNode(c)) old[i].replaceWith(c); });
  old.slice(children.length).forEach((o) => o.remove());
  if (at && !e.contains(document.activeElement)) {
    e.querySelector(at.choose ? `[data-choose="${at.choose}"]` : `[data-client="${at.client}"], [data-n="${at.n}"]`)?.focus();
  }
}

function options(select, list, chosen) {
  fill(select, list.map(([value, text]) => new Option(text, value)));
  select.value = chosen;
}

// ---- What the service tells ----

const boards = [new Board(0), new Board(1)];
const service = JSON.parse($("choice").textContent); // locks, openings, max; and then pace, held, opening, servers
let chosen = 0, dirty = false, rendered = 0;

function take({ left, right, ...rest }) {
  Object.assign(service, rest);
  [left, right].forEach((news, i) => news !== undefined && boards[i].take(news));
  wish();
  if (dirty) return;
  dirty = true;
  performance.now() - rendered > 50 ? render() : requestAnimationFrame(render); // what comes alone is seen at once
}

// wish asks once for the locks that the address names.
function wish() {
  const locks = decodeURIComponent(location.hash.slice(1)).split("/");
  if (location.hash) [0, 1].forEach((i) => (locks[i] ?? "") !== (boards[i].is?.lock ?? "") && ask({ do: "choose", board: i, lock: locks[i] ?? "" }));
  wish = () => {};
}

const live = () => boards.filter((b) => b.is);

// render writes what has changed.
function render() {
  dirty = false;
  rendered = performance.now();
  const pair = live().length > 1;
  $("stages").classList.toggle("pair", pair);
  document.body.classList.toggle("two", pair);
  options($("opening"), [["0", WORDS.choose], ...service.openings.map((o) => [o.n, `${o.n}. ${o.title}`])], service.opening);
  boards.forEach((b, i) => options($("lock" + i), [...(i ? [["", WORDS.nothing]] : []), ...service.locks.map((l) => [l.key, l.name])], b.is?.lock ?? ""));
  if (live().length) history.replaceState(null, "", "#" + live().map((b) => b.is.lock).join("/"));
  const todo = service.openings.find((o) => o.n === service.opening)?.todo ?? "";
  $("todo").hidden = !todo;
  set($("todo"), todo);
  set($("count"), WORDS.clients(boards[0].is ? boards[0].clients.length : 0, service.max));
  set($("held"), service.pace === "real" ? "" : WORDS.held(service.held));
  for (const b of document.querySelectorAll("[data-pace]")) b.setAttribute("aria-pressed", b.dataset.pace === service.pace);
  servers();
  for (const b of live()) b.words();
  list();
  log();
  if (live().some((b) => !b.width || b.many !== b.clients.length > 40)) resize();
  animate();
}

function servers() {
  $("servers").hidden = service.servers.length < 2;
  if ($("servers").hidden) return;
  fill($("servers"), service.servers.map((s) => make("span", { className: "server " + s.state }, make("b", {}, WORDS.server(s.n)), ` ${s.leader ? "★ " + WORDS.leader : WORDS.states[s.state]} `,
    ...(s.state === "up" ? ["kill", "stop", "cut"] : ["mend"]).map((fault) => button({ do: "server", n: String(s.n), fault }, WORDS.serverFaults[fault])))));
}

// list shows the clients and what can be done to the one that is chosen.
function list() {
  const pair = live().length > 1, first = boards[0];
  const names = first.is ? first.clients.map((c) => c.name) : [];
  chosen = Math.max(0, Math.min(chosen, names.length - 1));
  set($("head0"), pair ? WORDS.isLeft : WORDS.is);
  $("head1").hidden = !pair;
  set($("head1"), WORDS.isRight);
  fill($("clients").querySelector("tbody"), names.map((name, i) => {
    const quick = WORDS.quick[first.mood(i)];
    const tr = make("tr", { className: i === chosen ? "chosen" : "" }, make("th", { scope: "row" }, make("button", { type: "button", textContent: name })),
      ...live().map((b) => make("td", { className: look(b.mood(i)) }, ...state(b, i))),
      make("td", {}, ...(quick ? [button({ do: quick[0], client: String(i) }, quick[1])] : [])));
    tr.querySelector("button").dataset.choose = i;
    tr.querySelector("button").setAttribute("aria-pressed", i === chosen);
    return tr;
  }));
  const any = (f) => live().some((b) => f(b.is.rows[chosen] ?? {}));
  set($("chosen"), names.length ? WORDS.chosen(names[chosen]) : WORDS.none);
  for (const b of $("commands").querySelectorAll("button")) {
    b.disabled = !names.length;
    if (["losecreate", "losedelete", "delaylist"].includes(b.dataset.do)) b.setAttribute("aria-pressed", any((r) => r.armed?.includes(b.dataset.do)));
  }
  const show = (name, is) => { $("commands").querySelector(`[data-do=${name}]`).hidden = !is; };
  show("read", any((r) => r.reads));
  show("continue", any((r) => r.process === "stopped"));
  show("stop", !any((r) => r.process === "stopped"));
  show("mend", any((r) => r.line === "cut"));
  show("cut", !any((r) => r.line === "cut"));
}

// state is a client's mood in words, and what is going to happen to it.
function state(b, i) {
  const r = b.is.rows[i] ?? {};
  return [b.mood(i), ...(r.token && inside(b.mood(i)) ? [make("small", { className: "token" }, WORDS.bears(r.token))] : []),
    ...(r.armed ?? []).map((a) => make("small", {}, WORDS.armed[a])), ...(r.said ? [make("small", { className: "said", title: r.said }, r.said)] : [])];
}

const look = (is) => is === "holds" || is === "reads" ? "in" : trouble(is) ? "bad" : "";

function log() {
  const all = live().flatMap((b) => b.lines()).sort((a, b) => b.at - a.at).slice(0, 200);
  const pair = live().length > 1, ol = $("log").querySelector("ol");
  const item = (l) => make("li", { line: l }, ...(pair ? [make("b", { className: "side" + l.side }, l.side ? WORDS.right : WORDS.left), " "] : []), l.text);
  const fresh = all.indexOf(ol.firstElementChild?.line), old = [...ol.children];
  if (ol.pair !== pair || fresh < 0 || all.slice(fresh).some((l, i) => old[i]?.line !== l)) return Object.assign(ol, { pair }).replaceChildren(...all.map(item));
  ol.prepend(...all.slice(0, fresh).map(item));
  while (ol.children.length > all.length) ol.lastElementChild.remove();
}

function resize() {
  for (const b of live()) {
    b.width = b.stage.canvas.clientWidth;
    b.many = b.clients.length > 40;
    b.stage.size();
  }
  animate();
}

let moving = false, painted = 0;
function animate() {
  if (moving) return;
  moving = true;
  requestAnimationFrame(function tick(now) {
    if (now - painted > 25 || !painted) { // thirty pictures a second are enough, and leave time for what is new
      painted = now;
      moving = live().map((b) => b.draw(performance.now())).some(Boolean);
    }
    if (moving) requestAnimationFrame(tick);
  });
}

const events = new EventSource("/events?token=" + token);
events.onmessage = (e) => { complain(""); take(JSON.parse(e.data)); };
events.onerror = () => complain(WORDS.gone);

function complain(text) {
  $("trouble").hidden = !text;
  set($("trouble"), text);
}

// ---- What the page asks ----

async function ask(command) {
  try {
    const answer = await fetch("/do", { method: "POST", headers: { "Zklock-Token": token, "Content-Type": "application/json" }, body: JSON.stringify(command) });
    complain(answer.ok ? "" : await answer.text());
  } catch {
    complain(WORDS.gone);
  }
}

function button(data, text) {
  const b = make("button", { type: "button", textContent: text });
  Object.assign(b.dataset, data);
  return b;
}

// press does what a button says.
function press(b) {
  const { do: what, n, pace, fault, client, choose } = b.dataset;
  if (choose !== undefined) return select(Number(choose));
  if (what === "pace") return ask({ do: what, pace });
  if (what === "server") return ask({ do: what, n: Number(n), fault });
  if (what === "add") return ask({ do: what, n: Number(n) });
  if (what === "clear") return ask({ do: what });
  ask({ do: what, client: client === undefined ? chosen : Number(client) });
}

function select(i) {
  chosen = Math.max(0, Math.min(i, (boards[0].clients?.length ?? 1) - 1));
  list();
  $("clients").querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("click", (e) => {
  const b = e.target.closest("button[data-do], button[data-choose]");
  if (b) press(b);
});
$("opening").onchange = (e) => ask({ do: "opening", n: Number(e.target.value) });
[0, 1].forEach((i) => { $("lock" + i).onchange = (e) => ask({ do: "choose", board: i, lock: e.target.value }); });
for (const b of boards) b.stage.canvas.onclick = (e) => {
  const at = b.clients.findIndex((c, i) => { const p = b.stage.clientAt(i); return Math.hypot(p.x - e.offsetX, p.y - e.offsetY) < Math.max(12, b.stage.dot * 1.5); });
  if (at >= 0) select(at);
};

// ---- Keys ----

const moves = {
  ArrowDown: () => select(chosen + 1), ArrowUp: () => select(chosen - 1), PageDown: () => select(chosen + 10), PageUp: () => select(chosen - 10),
  h: () => { const c = boards[0].clients, next = [...c.keys()].map((i) => (chosen + 1 + i) % c.length).find((i) => live().some((b) => inside(b.mood(i)))); if (next !== undefined) select(next); },
  " ": () => ask({ do: "pace", pace: service.pace === "pause" ? "real" : "pause" }),
  "?": () => $("keys").showModal(),
  S: () => $("save").click(),
  f: () => { $("wide").setAttribute("aria-pressed", document.body.classList.toggle("wide")); resize(); },
};
for (const b of document.querySelectorAll("[data-key]")) {
  moves[b.dataset.key] = () => !b.hidden && !b.disabled && press(b);
  b.setAttribute("aria-keyshortcuts", b.dataset.key === "+" ? "Plus" : b.dataset.key.replace(/^([A-Z])$/, "Shift+$1"));
  $("keys").querySelector("dl").append(make("div", {}, make("dt", {}, make("kbd", {}, b.dataset.key)), make("dd", {}, b.textContent)));
  b.append(" ", make("kbd", { ariaHidden: "true" }, b.dataset.key));
}
document.addEventListener("keydown", (e) => {
  const busy = e.target.matches("select, input") || [" ", "Enter"].includes(e.key) && e.target.matches("button, a, summary");
  if (busy || e.altKey || e.ctrlKey || e.metaKey || !moves[e.key] || $("keys").open) return;
  e.preventDefault();
  moves[e.key]();
});

for (const d of document.querySelectorAll("details")) d.ontoggle = render;
$("help").onclick = moves["?"];
$("wide").onclick = moves.f;
addEventListener("resize", resize);
const size = new ResizeObserver(resize);
for (const b of boards) size.observe(b.stage.canvas);
