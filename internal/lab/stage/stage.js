// The stage draws one moment of a story, in the same way for a recorded story and a live one. A
// story consists of intervals, so any moment of it can be drawn at once.

const still = matchMedia("(prefers-reduced-motion: reduce)");

const REQUEST = 0, REPLY = 1, NOTIFICATION = 2;
const SETS_WATCH = 1, GOT_LOST = 2;
const OPS = { 1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 9: "sync", 12: "getChildren",
  14: "multi", 101: "setWatches", "-10": "connect", "-11": "close" };

const WRITES = [1, 2, 5, 14];

const text = (en, zh) => ({ en, zh });
const EVENTS = {
  1: (on) => say(`${on} has been created`, `${on} 已创建`), 2: (on) => say(`${on} has been deleted`, `${on} 已删除`),
  3: (on) => say(`the data of ${on} has changed`, `${on} 的数据变了`),
  4: (on) => say(`the children of ${on} have changed`, `${on}的子节点变了`),
};
const ERRORS = { "-4": text("connection lost", "连接丢失"), "-101": text("no such znode", "没有这个 znode"),
  "-110": text("already exists", "已存在"), "-111": text("not empty", "不为空") };

// The names of a client's states, and shorter names for where there is little room.
const CLIENT_STATES = {
  idle: text("idle", "空闲"), waits: text("waits", "等待"), holds: text("holds", "持有"), reads: text("reads", "读"),
  releases: text("releases", "释放"), starting: text("starting", "正在启动"), crashed: text("crashed", "已崩溃"),
  stopped: text("stopped", "已停住"), "cut off": text("disconnected", "断线"), "got an error": text("got an error", "出错"),
  "told that it lost the lock": text("knows that it lost the lock", "已得知锁丢失"),
  "stopped, believes it holds": text("stopped, believes it holds", "已停住，以为自己持有锁"),
  "cut off, believes it holds": text("disconnected, believes it holds", "断线，以为自己持有锁"),
};
const BRIEFLY = {
  "told that it lost the lock": text("knows: lost", "已知丢锁"),
  "stopped, believes it holds": text("stopped, holds?", "已停住，持有？"),
  "cut off, believes it holds": text("disconnected, holds?", "断线，持有？"),
};
// While its znode exists, such a client still holds the lock, or has given it up by its own clock.
const STILL_HOLDS = { "stopped, believes it holds": text("stopped, holds", "已停住，仍持有"), "cut off, believes it holds": text("disconnected, holds", "断线，仍持有"),
  "told that it lost the lock": text("no longer relies on it", "不再依赖这把锁") };
const stateName = (is, owns = false) => say((owns ? STILL_HOLDS[is] : null) ?? CLIENT_STATES[is] ?? text(is, is));
const errorName = (err) => say(ERRORS[err] ?? text(`error ${err}`, `错误 ${err}`));

// ---- A story, made ready to be drawn ----

// Watches and frames are sent as rows of numbers.
const watch = ([client, node, from, to]) => ({ client, node, from, to });
const frame = ([client, kind, op, node, from, to, bytes, names, err, flags, at]) =>
  ({ client, kind, op, node, from, to, bytes, names, err, lost: (flags & GOT_LOST) > 0, watch: (flags & SETS_WATCH) > 0, at });

// awakenings returns the intervals in which a client is awake: from a notification to the next
// reply to that client, which shows it what has changed.
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
const stateAt = (client, t) => client.states.findLast((m) => m.at <= t)?.is ?? "idle";

// inside reports whether a client is between Lock and Unlock, as far as the client knows. trouble
// reports whether something is wrong with it.
const inside = (is) => is === "holds" || is === "reads" || is.endsWith("believes it holds");
const trouble = (is, owns = false) => /^(crashed|cut off|stopped|told|got)/.test(is) && !(owns && is.startsWith("told"));

// number returns the number at the end of a znode's name, with R or W before it in a shared queue.
function number(node) {
  const digits = node.name.match(/(\d+)$/)?.[1];
  if (digits === undefined) return node.name;
  return (node.name.includes("__READ__") ? "R" : node.name.includes("__WRIT__") ? "W" : "") + Number(digits);
}

// place returns a znode's number, which is its place in the queue.
const place = (n) => Number(n.name.match(/\d*$/)[0]);

// tag returns the first two letters of the guid that a client has put into a znode's name, or "".
const tag = (node) => node?.name.match(/_c_([0-9a-f]{2})/)?.[1] ?? "";

// onOf returns the znode that a frame is about, or undefined if that is the directory.
const onOf = (story, f) => "on" in f ? f.on : story.nodes[f.node];

function target(story, f) {
  if (f.node >= 0) return `znode ${number(story.nodes[f.node])}`;
  return f.node === -1 ? say("the directory", "目录") : "";
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

// sentence describes one frame.
function sentence(story, f) {
  const said = onItsWay(story, f);
  return f.lost ? say(`${said} It never arrives.`, `${said}它没有到达。`) : said;
}

function onItsWay(story, f) {
  const name = say(story.clients[f.client].name), what = OPS[f.op] ?? say("request", "请求");
  const on = target(story, f), asked = `${what} ${on}`.trim(), named = /^[A-Z]/i.test(name) ? ` ${name} ` : name; // in Chinese
  if (f.kind === REQUEST && f.op === 1 && f.node !== -1) {
    return say(`${capital(name)} asks: create a znode.`, `${name} 请求：创建一个 znode。`);
  }
  if (f.kind === REQUEST && f.watch) return say(`${capital(name)} asks: ${asked}, and watch it.`, `${name} 请求：${asked}，并监听它。`);
  if (f.kind === REQUEST) return say(`${capital(name)} asks: ${asked}.`, `${name} 请求：${asked}。`);
  if (f.kind === NOTIFICATION) {
    const event = EVENTS[f.op]?.(on || say("it", "它")) ?? say("an event", "一个事件");
    return say(`The server notifies ${name}: ${event}.`, `服务器通知${named}：${event}。`);
  }
  if (f.err !== 0) {
    return say(`The server answers ${name}: ${what} failed: ${errorName(f.err)}.`, `服务器响应${named}：${what} 失败：${errorName(f.err)}。`);
  }
  if (f.op === 12) return say(`The server answers ${name}: a list of ${f.names} ${f.names === 1 ? "name" : "names"}.`, `服务器响应${named}：${f.names} 个名字的列表。`);
  if (f.op === 1) return say(`The server answers ${name}: ${on} is created.`, `服务器响应${named}：已创建 ${on}。`);
  return say(`The server answers ${name}: ${asked} is done.`, `服务器响应${named}：${asked} 完成。`);
}

// ---- The stage: one story, drawn at one moment ----

// BY_HAND is how many microseconds the drawing says that the lock's single znode was deleted by hand.
const BY_HAND = 1_500_000;

class Stage {
  constructor(root, largest = 1) {
    this.root = root;
    this.canvas = root.querySelector("canvas");
    this.ink = this.canvas.getContext("2d");
    this.largest = largest; // how much the signs may grow if there is room
    this.common = 420; // the side in pixels above which the signs grow
  }

  show(story, title, lesson) {
    this.story = story;
    this.named = { step: title, lesson };
    this.write();
  }

  // write writes what the story is about. It is also called when the language has changed.
  write() {
    for (const name of ["step", "lesson"]) this.root.querySelector("." + name).textContent = say(this.named[name]);
  }

  // size fits the drawing to its canvas.
  size() {
    const box = this.canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    this.color = Object.fromEntries(["ink", "soft", "paper", "line", "request", "reply", "notification", "holder", "bad", "awake"]
      .map((name) => [name, style.getPropertyValue("--" + name).trim()]));
    const { length: clients } = this.story.clients, areTwo = clients === 2 && this.story.slots === 4; // see at
    // The store's height, at the bottom.
    this.foot = this.story.stored ? Math.min(box.height * 0.3, Math.max(64, box.height * 0.15) + 12) : 0;
    const room = box.height - this.foot;
    // Two clients are at the top: only the ring is below them.
    const side = areTwo ? Math.min(box.width * 0.9, room * 1.6) : Math.min(box.width, room);
    this.width = box.width;
    this.many = this.story.clients.length > 40;
    const isSparse = clients <= 6, common = isSparse ? this.common * 0.8 : this.common; // few clients: larger signs
    this.small = side < common;
    this.store = { x: box.width / 2, y: box.height - this.foot / 2, w: Math.min(box.width - 8, 380 + this.foot), h: this.foot - 8 };
    this.tiny = side < Math.min(260, this.common);
    this.scale = this.many ? 1 : Math.max(1, Math.min(this.largest, side / common));
    this.isTagged = clients <= (this.tiny ? 3 : 4) && this.story.nodes.some(tag) && !this.story.stored; // there is room for the guids; beside a store's tokens they would look like tokens
    this.isCrowd = this.tiny && clients > 6; // there is room for the numbers of the clients, but not for other numbers
    this.dot = this.many ? Math.max(1, Math.min(4, side / clients * 1.2)) : this.isCrowd ? 9 : this.tiny ? (isSparse ? 12 : 10) : this.small ? 13 : 17 * this.scale;
    const label = (this.isCrowd ? 19 : this.tiny ? 21 : this.small ? 25 : 29) * this.scale;
    const outer = Math.max(40, side / 2 - this.dot - label);
    // A wide drawing is an ellipse, and a high one too.
    const beside = this.tiny ? 24 : isSparse ? 44 : 60;
    this.stretch = areTwo ? 1 : Math.max(1, Math.min(isSparse ? 2.2 : 1.6, (box.width / 2 - this.dot - beside) / outer));
    this.rise = areTwo || this.many ? 1 : Math.max(1, Math.min(1.35, (room / 2 - this.dot - label) / outer));
    const isFew = this.tiny && clients <= 3; // whose znodes may have guids
    const isPlain = this.story.znode || this.story.step.startsWith("1"); // its znode is in the middle
    const isTight = this.tiny && !this.isCrowd && !isPlain; // a znode must not touch its client's ring
    const hub = this.story.servers?.length > 1 || isPlain && isSparse ? 0.4 : isFew ? 0.28 : isTight ? 0.31 : this.tiny ? 0.37 : 0.31;
    const node = isFew ? 0.48 : isTight ? 0.47 : this.tiny ? 0.57 : isSparse ? 0.55 : 0.62;
    this.radius = { hub: outer * hub, node: outer * node, client: outer };
    const top = areTwo ? this.dot + label + outer / 2 : room / 2; // the y of the middle; for two clients it may be lower
    this.middle = { x: box.width / 2, y: areTwo ? Math.max(top, (room + top - this.radius.node) / 2) : top };
  }

  at(slot, radius) {
    const { slots, clients } = this.story;
    // Two clients are at ten and at two o'clock, so that a watch does not cross the middle.
    const areTwo = slots === 4 && clients.length === 2;
    const angle = areTwo ? Math.PI * (slot / 3 - 5 / 6) : 2 * Math.PI * slot / Math.max(3, slots) - Math.PI / 2;
    return { x: this.middle.x + radius * this.stretch * Math.cos(angle), y: this.middle.y + radius * this.rise * Math.sin(angle) };
  }
  clientAt(i) { return this.at(this.story.clients[i].slot, this.radius.client); }
  nodeAt(i) { return this.placeOf(this.story.nodes[i]); }
  placeOf(n) {
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
    const watches = story.watches.filter((w) => there(w, t));
    if (this.many) this.rays(watches);
    else watches.forEach((w) => this.watch(w));
    if (!this.many) for (const f of this.flying()) if (f.kind === NOTIFICATION) this.watch({ client: f.client, on: onOf(story, f) }, this.color.notification);
    this.directory(); // drawn over the watches, so that its name can be read
    const flying = this.flying();
    const under = flying.filter((f) => !this.over(f));
    for (const f of under) if (f.kind !== REQUEST) this.frame(f, focus);
    story.nodes.forEach((n, i) => there(n, t) && this.node(n, i));
    for (const f of under) if (f.kind === REQUEST) this.frame(f, focus); // it leaves its client, and passes the znodes
    if (this.byHand()) this.below(this.placeOf({ slot: -1 }), say("deleted by hand", "手工删除"), this.color.bad);
    this.taken = this.many ? [] : this.chips(); // where no name may be
    const awake = new Set(story.awake.filter((a) => there(a, t)).map((a) => a.client));
    story.clients.forEach((c, i) => this.client(c, i, awake.has(i)));
    if (this.foot) this.drawStore();
    this.labelled = [];
    for (const f of flying) if (this.over(f)) this.frame(f, focus);
    if (!this.many) for (const { is: { x, y } } of flying) this.taken.push({ x: x - 8, y: y - 8, w: 16, h: 16 });
    const lists = flying.filter((f) => f.kind === REPLY && f.op === 12 && !f.lost);
    if (this.isTagged) for (const f of lists.length || this.tiny ? lists : story.listed?.filter((f) => f.to <= t) ?? []) this.search(f.client);
    for (const f of flying) this.nameFrame(f, focus);
    for (const f of flying) if (f.kind === NOTIFICATION && this.over(f)) this.frame(f, focus); // over the names
  }

  // nameFrame writes a frame's name beside it if there is room. In a burst it writes each name
  // once.
  nameFrame(f, focus) {
    if (this.many || f !== focus && (this.isCrowd || !this.labels(f))) return;
    const words = this.called(f), isBurst = this.flying().length > 4;
    if (f !== focus && isBurst && this.labelled.some((l) => l.words === words)) return;
    this.ink.globalAlpha = focus && f !== focus ? 0.25 : 1;
    this.label(words, f.is, f === focus);
    this.ink.globalAlpha = 1;
  }

  // tagOf returns the guid of a client, as its znode shows it.
  tagOf(i) { return this.isTagged ? tag(this.story.nodes.findLast((n) => n.owner === i)) : ""; }

  // search draws how a client that has got a list compares each name with its guid.
  search(i) {
    const { color } = this;
    if (this.tagOf(i)) this.story.nodes.forEach((n, j) => {
      if (!there(n, this.t)) return;
      const is = n.owner === i; // two letters of two guids may be equal
      this.below(this.nodeAt(j), is ? say("mine", "我的") : say("no", "不是"), is ? color.holder : color.ink);
    });
  }

  // below writes a word below a znode. No name may cover it.
  below({ x, y }, word, fill) {
    const { ink, color, scale } = this, bottom = y + this.chip().h / 2;
    ink.font = `700 ${12 * scale}px system-ui, "DejaVu Sans", sans-serif`;
    const w = ink.measureText(word).width + 6;
    ink.fillStyle = color.paper;
    ink.fillRect(x - w / 2, bottom + 2, w, 15 * scale);
    this.taken?.push({ x: x - w / 2, y: bottom + 2, w, h: 15 * scale });
    this.text(word, x, bottom + 10 * scale, fill, 12, "700");
  }

  // left returns how much of a client's session is left, from 1 to 0. The session ends when the
  // server has not heard from the client for its whole length. left returns null if this is not
  // known.
  left(c) {
    const { story, t } = this;
    if (!story.session || !c.beats?.length) return null;
    if (c.over >= 0 && c.over <= t) return 0;
    const last = c.beats.findLast((at) => at <= t);
    return last === undefined ? null : Math.max(0.02, 1 - (t - last) / story.session);
  }

  // ring draws a client's session. The ring is full when the server hears from the client, and
  // empty when the session ends. Only the ring of a silent client turns red.
  ring(c, p, size, isSilent) {
    const left = this.left(c), { ink, color } = this;
    if (left === null || this.many) return;
    const radius = size + (this.isCrowd ? 3 : this.tiny ? 5 : 8);
    ink.lineWidth = this.tiny ? 2 : 3;
    ink.strokeStyle = color.line;
    if (!left) ink.setLineDash([2, 5]);
    circle(ink, p, radius);
    ink.stroke();
    ink.setLineDash([]);
    if (!left) return;
    ink.strokeStyle = isSilent && left < 0.5 ? color.bad : color.request;
    ink.beginPath();
    ink.arc(p.x, p.y, radius, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * left);
    ink.stroke();
  }

  // kept returns what the store has at this moment: the last write, the last write that was
  // accepted, and the greatest token.
  kept() {
    const done = (this.story.writes ?? []).filter((w) => w.to <= this.t), taken = done.filter((w) => w.ok);
    return { last: done.at(-1), value: taken.at(-1), greatest: Math.max(0, ...taken.map((w) => w.token)) };
  }

  // drawStore draws what the lock protects. If the accepted value was written too late, the store
  // has the colour of harm. Of a lock without tokens it says no word of tokens: that would be the repair.
  drawStore() {
    const { ink, color, store: { x, y, w, h } } = this, { last, value, greatest } = this.kept();
    const harmed = Boolean(value?.late);
    ink.beginPath();
    ink.roundRect(x - w / 2, y - h / 2, w, h, 8);
    ink.fillStyle = harmed ? color.bad : color.paper;
    ink.fill();
    ink.strokeStyle = harmed ? color.bad : color.ink;
    ink.lineWidth = 2;
    ink.stroke();
    const of = value && clientName(value.client), step = h / 3.1, fill = harmed ? color.paper : color.ink;
    const lines = [{ words: value ? say(`The store: ${of}'s value`, `存储：${of} 写入的值`) : say("The store: nothing written yet", "存储：还没有写入过"), weight: "700" }];
    if (greatest) lines.push({ words: say(`greatest token: ${tokenName(greatest)}`, `最大令牌：${tokenName(greatest)}`), weight: "400" });
    if (last) lines.push({ words: capital(storeSays(last)), weight: "700" });
    lines.forEach(({ words, weight }, i) => {
      ink.font = `${weight} 10px system-ui, "DejaVu Sans", sans-serif`;
      const fits = 10 * (w - 12) / (ink.measureText(words).width || 1);
      this.text(words, x, y + (i - (lines.length - 1) / 2) * step + 1, fill, Math.min(16, step * 0.85, fits) / this.scale, weight);
    });
    for (const write of this.story.writes ?? []) if (write.from <= this.t && this.t < write.to) this.flyingWrite(write);
    this.story.clients.forEach((c, i) => c.pending && this.pendingWrite(i));
    if (last && !last.ok) this.refusedWrite(last);
  }

  // flyingWrite draws a write on its way to the store, with its token.
  flyingWrite(w) {
    const { color, store } = this, from = this.clientAt(w.client), to = { x: store.x, y: store.y - store.h / 2 };
    const share = still.matches ? 0.5 : (this.t - w.from) / (w.to - w.from);
    const p = { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
    this.writeChip(p, w.token ? tokenName(w.token) : say("write", "写"), w.late ? color.bad : color.request);
  }

  // pendingWrite draws a write that a stopped client will send when it continues.
  pendingWrite(i) {
    const { x, y } = this.clientAt(i), { token } = this.story.clients[i];
    const name = this.tiny && token ? "" : say(" write", " 写");
    const p = { x: Math.max(x - this.dot, (this.tiny ? 34 : 62) * this.scale), y: y + this.dot * 2 + 28 * this.scale };
    this.writeChip(p, `❚❚${name}${token ? " " + tokenName(token) : ""}`, this.color.soft);
  }

  // refusedWrite draws a write that has bounced off the store: its chip stays there, hollow, with the token that is greater.
  refusedWrite(w) {
    const { store, scale, color } = this, p = { x: this.clientAt(w.client).x, y: store.y - store.h / 2 - 14 * scale };
    this.writeChip(p, `${tokenName(w.token)} < ${tokenName(this.kept().greatest)} ✕`, color.paper, color.bad);
  }

  writeChip(p, words, fill, of = this.color.paper) {
    const { ink, color } = this;
    ink.font = `700 ${12 * this.scale}px system-ui, "DejaVu Sans", sans-serif`;
    const width = ink.measureText(words).width + (this.tiny ? 6 : 12), height = 20 * this.scale;
    p.x = Math.max(p.x, width / 2 + 2);
    ink.beginPath();
    ink.roundRect(p.x - width / 2, p.y - height / 2, width, height, 5);
    ink.fillStyle = fill;
    ink.fill();
    ink.strokeStyle = of;
    ink.lineWidth = 2;
    ink.stroke();
    this.text(words, p.x, p.y + 1, of, 12, "700");
  }

  // serverAt returns where a server is drawn if there are several. hubOf returns the end of a
  // client's connection: its server, or the only one.
  serverAt(n) {
    const { hub } = this.radius, angle = 2 * Math.PI * (n - 1) / this.story.servers.length - Math.PI / 2;
    return { x: this.middle.x + hub * 0.62 * Math.cos(angle), y: this.middle.y + hub * 0.62 * Math.sin(angle), radius: hub * 0.4 };
  }
  hubOf(i) {
    const n = this.story.servers?.length > 1 ? this.story.clients[i].server : 0;
    return n ? this.serverAt(n) : { ...this.middle, radius: this.radius.hub };
  }

  // servers draws several servers: which of them leads, which is partitioned or down, and the
  // connection of each client to its server.
  servers() {
    const { ink, color, story } = this, { servers } = story;
    const up = (s) => s.state === "up";
    ink.lineWidth = 1.5;
    story.clients.forEach((c, i) => {
      if (!c.server || this.many) return;
      const client = this.clientAt(i), hub = this.hubOf(i), dead = stateAt(c, this.t) === "crashed";
      const isCut = /^cut off/.test(stateAt(c, this.t));
      if (dead) return;
      ink.strokeStyle = isCut ? color.bad : color.line;
      ink.setLineDash(isCut ? [3, 6] : []);
      line(ink, toward(client, hub, this.dot), toward(hub, client, hub.radius));
    });
    for (const [i, a] of servers.entries()) for (const b of servers.slice(i + 1)) {
      const holds = up(a) && up(b);
      ink.strokeStyle = holds ? color.ink : color.bad;
      ink.setLineDash(holds ? [] : [2, 5]);
      line(ink, this.serverAt(a.n), this.serverAt(b.n));
    }
    ink.setLineDash([]);
    for (const s of servers) {
      const p = this.serverAt(s.n), size = Math.max(9, p.radius / 1.6) / this.scale;
      circle(ink, p, p.radius);
      ink.fillStyle = color.paper;
      ink.fill();
      ink.strokeStyle = up(s) ? color.ink : color.bad;
      ink.lineWidth = s.leader && up(s) ? 3 : 1.5;
      ink.stroke();
      this.text(s.leader && up(s) ? `${s.n} ★` : s.state === "stopped" ? `${s.n} ❚❚` : String(s.n), p.x, p.y + 1, up(s) ? color.ink : color.bad, Math.min(15, size), "700");
      if (s.state === "killed") cross(ink, p, p.radius * 1.2, color.bad);
    }
  }

  directory() {
    const { ink, color, middle, radius } = this;
    const plain = this.story.znode || this.story.step.startsWith("1");
    if (!plain) {
      ink.strokeStyle = color.line;
      ink.lineWidth = this.many ? 1 : 2;
      ink.beginPath();
      ink.ellipse(middle.x, middle.y, radius.node * this.stretch, radius.node * this.rise, 0, 0, 2 * Math.PI);
      ink.stroke();
    }
    if (this.story.servers?.length > 1) return this.servers();
    circle(ink, middle, radius.hub);
    ink.fillStyle = color.paper;
    ink.fill();
    ink.strokeStyle = color.ink;
    ink.lineWidth = 2;
    ink.stroke();
    const fits = Math.min(14, radius.hub / (plain ? 4.3 : 3.6) / this.scale), isShort = radius.hub < 34; // for the name
    const size = Math.max(11 / this.scale, fits); // smaller, it could not be read
    const above = plain ? radius.hub * 0.35 : isShort ? 0 : size * this.scale * 0.6;
    this.text(isShort ? "ZK" : "ZooKeeper", middle.x, middle.y - above, color.ink, size, fits < size && !isShort ? "400" : "600"); // bold, it would not fit
    if (plain || isShort) return;
    const isWatched = this.story.watches.some((w) => w.node < 0 && there(w, this.t)) || this.flying().some((f) => f.kind === NOTIFICATION && !onOf(this.story, f));
    const words = isWatched ? say("/lock: children", "/lock 的子节点") : "/lock", narrow = Math.min(size, radius.hub / 4.2 / this.scale);
    this.text(words, middle.x, middle.y + size * this.scale * 0.8, isWatched ? color.ink : color.soft, isWatched ? Math.max(11 / this.scale, narrow) : size);
  }

  text(words, x, y, fill, size, weight = "400") {
    const { ink } = this;
    ink.font = `${weight} ${size * this.scale}px system-ui, "DejaVu Sans", sans-serif`;
    ink.fillStyle = fill;
    ink.fillText(words, x, y);
  }

  // rays draws the watches of a crowd, in one stroke because there are very many.
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

  // watch draws an arrow from a client to what it watches. If that is the directory or a znode of
  // the client's own, the arrow bends past the client's znode.
  watch({ client, node, on = this.story.nodes[node] }, stroke = this.color.soft) {
    const { ink } = this;
    const from = this.clientAt(client), to = on ? this.placeOf(on) : this.middle;
    const own = !on || on.owner === client;
    const tip = toward(to, from, !on ? this.radius.hub + 2 : this.chip().h / 2 + 6);
    const far = Math.hypot(from.x - tip.x, from.y - tip.y) || 1;
    const out = own ? this.chip().w * (on ? 1 : 1.35) : this.round(from, tip, far);
    const bend = { x: (from.x + tip.x) / 2 - (from.y - tip.y) / far * out, y: (from.y + tip.y) / 2 + (from.x - tip.x) / far * out };
    const start = toward(from, bend, this.dot + 2);
    ink.strokeStyle = ink.fillStyle = stroke;
    ink.lineWidth = stroke === this.color.soft ? 1.5 : 2.5;
    ink.setLineDash([5, 4]);
    ink.beginPath();
    ink.moveTo(start.x, start.y);
    ink.quadraticCurveTo(bend.x, bend.y, tip.x, tip.y);
    ink.stroke();
    ink.setLineDash([]);
    arrowhead(ink, bend, tip, 8);
  }

  // round returns how far a line has to bend so that it does not cross the middle.
  round(from, tip, far) {
    const { middle, radius } = this;
    const along = ((middle.x - from.x) * (tip.x - from.x) + (middle.y - from.y) * (tip.y - from.y)) / far;
    // beside is the distance of the middle from the line.
    const beside = ((middle.x - from.x) * (from.y - tip.y) - (middle.y - from.y) * (from.x - tip.x)) / far;
    const near = radius.hub + 10, crosses = along > 0 && along < far && Math.abs(beside) < near;
    return crosses ? (beside > 0 ? 2 : -2) * (near - Math.abs(beside)) : 0;
  }

  chip() { return this.isCrowd ? { w: 8, h: 8 } : this.tiny ? { w: this.isTagged ? 38 : 18, h: this.isTagged ? 18 : 13 } : this.small ? { w: this.isTagged ? 38 : 28, h: 18 } : { w: (this.isTagged ? 50 : 38) * this.scale, h: 22 * this.scale }; }

  node(n, i) {
    const { ink, color } = this;
    const of = this.story.clients[n.owner]; // undefined if the owner is not shown
    const p = this.nodeAt(i), owner = of ? this.clientAt(n.owner) : this.middle;
    const held = of && inside(stateAt(of, this.t)) && !this.story.nodes.some((m, j) => j < i && m.owner === n.owner && there(m, this.t));
    const isOrphan = of && stateAt(of, this.t) === "got an error"; // its owner does not know it: no line
    const blocks = isOrphan && !this.story.nodes.some((m) => there(m, this.t) && place(m) < place(n));
    ink.strokeStyle = held ? color.holder : color.line;
    ink.lineWidth = this.many ? 0.5 : held ? 2.5 : 1.2;
    if ((!this.many || held) && !isOrphan) line(ink, n.slot < 0 ? toward(this.middle, owner, this.radius.hub) : p, owner); // its owner
    if (this.many) {
      ink.fillStyle = held ? color.holder : color.soft;
      circle(ink, p, held ? 4 : this.dot);
      ink.fill();
      return;
    }
    const large = this.small ? 12 : 14, size = !this.tiny ? large : this.isTagged ? 13 : 9, isLock = n.slot < 0;
    const creator = isLock && of?.name.en.match(/^client (\d+)$/)?.[1]; // the lock's single znode shows who created it
    const words = number(n) + (creator ? "·" + creator : this.isTagged && tag(n) ? "·" + tag(n) : "");
    const isLeft = isLock && of?.over >= 0 && of.over <= this.t, isBad = blocks || isLeft; // its creator's session has ended
    ink.font = `600 ${size * this.scale}px system-ui, "DejaVu Sans", sans-serif`;
    const { w: narrow, h } = this.chip(), w = isLock ? Math.max(28, narrow, ink.measureText(words).width + 6) : narrow;
    ink.beginPath();
    ink.roundRect(p.x - w / 2, p.y - h / 2, w, h, 4);
    ink.fillStyle = held ? color.holder : isBad ? color.bad : color.paper;
    ink.fill();
    ink.strokeStyle = held ? color.holder : isOrphan || isLeft ? color.bad : color.ink;
    ink.lineWidth = isOrphan ? 2 : 1.5;
    if (isOrphan) ink.setLineDash([4, 3]);
    ink.stroke();
    ink.setLineDash([]);
    if (blocks && !this.tiny) this.below(p, say("blocks", "挡住"), color.bad);
    if (!this.isCrowd) this.text(words, p.x, p.y + 1, held || isBad ? color.paper : color.ink, size, "600");
  }

  client(c, i, awake) {
    const { ink, color } = this;
    const p = this.clientAt(i), is = stateAt(c, this.t);
    const holds = inside(is);
    const owns = this.story.nodes.some((n) => n.owner === i && there(n, this.t)); // else it only believes that it holds the lock
    const since = c.states.findLast((m) => m.at <= this.t)?.at;
    const leaves = this.story.frames.some((f) => f.client === i && f.kind === REQUEST && f.op === 2 && f.from >= since && f.from <= this.t);
    const bad = trouble(is, owns) || holds && !owns && !leaves && !this.many && this.story.nodes.length > 0;
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
    if (holds && !this.many) { // a second ring, for people who do not see colours
      circle(ink, p, size + 4);
      ink.lineWidth = 1.5;
      ink.stroke();
    }
    if (this.story.notified?.get(i) <= this.t) { // since the last action
      circle(ink, p, size + (this.tiny ? 6 : 8));
      ink.strokeStyle = color.notification;
      ink.lineWidth = 3;
      ink.stroke();
    }
    this.ring(c, p, size, /^(crashed|stopped|cut off)/.test(is));
    const short = c.name.en.replace(/^client /, ""), initial = short.length > 2 ? short[0].toUpperCase() + (short.match(/\d/) ?? "") : short;
    const isDead = is === "crashed";
    if (isDead) { // its circle is struck through, behind the number
      cross(ink, p, size * 1.8, color.bad);
      circle(ink, p, size * 0.6);
      ink.fillStyle = color.paper;
      ink.fill();
    }
    const id = this.tiny ? "" : this.tagOf(i); // on a phone it stands only in the znode
    if (id) this.text(id, p.x, p.y + size * 0.5, holds ? color.paper : color.ink, 11);
    const role = this.story.roles?.[i]; // what it wants: R or W; a lock that does not learn that has it in grey
    if (role) {
      const isKnown = this.story.step === "6", of = isKnown && is !== "idle" ? color.ink : color.soft;
      this.text(role, p.x, p.y + size * 0.48, holds ? color.paper : of, this.tiny ? 9 : 12, isKnown ? "700" : "400");
    }
    if (!this.many) this.text(initial, p.x, p.y + (id || role ? -size * 0.25 : 1), holds ? color.paper : is === "idle" ? color.soft : color.ink, this.tiny ? 10 : this.small ? 12 : 14, "600");
    const believes = holds && bad && !trouble(is);
    const isMany = this.story.clients.length > 6; // there is no room for long names
    const awaken = isMany ? say("awake", "醒着") : say("waits, awake", "等待，醒着");
    let words = believes ? say("believes it holds", "以为自己持有") : awake && !holds ? awaken : is === "idle" ? "" : BRIEFLY[is] && !(owns && STILL_HOLDS[is]) && (this.tiny || this.story.clients.length > 3) ? say(BRIEFLY[is]) : stateName(is, owns);
    if (this.tiny && owns && is.startsWith("told")) words = say("gave it up", "不再依赖");
    if (isMany && is === "waits" && !awake) words = ""; // nearly all of them wait
    if (short.length > 2) words = say(c.name) + (words && ", " + words);
    if (!words) return;
    const below = p.y >= this.middle.y - 1;
    const y = p.y + (below ? 1 : -1) * (size + (this.tiny ? 13 : this.small ? 17 : 20) * this.scale);
    const half = words.length * (this.tiny ? 2.9 : 4) * this.scale, edge = this.middle.x * 2;
    const fill = bad ? color.bad : holds ? color.holder : color.soft, weight = holds || bad || awake ? "700" : "400";
    const x = Math.min(edge - half - 2, Math.max(half + 2, p.x)), h = 16 * this.scale;
    this.text(words, x, y, fill, this.tiny ? 10 : 14, weight);
    const w = ink.measureText(words).width;
    this.taken.push({ x: x - w / 2, y: y - h / 2, w, h });
  }

  // frame draws a frame on its way. A request is an arrow, which is hollow if it only reads; a reply is a disc, and a
  // notification is a diamond with an exclamation mark.
  frame(f, focus) {
    const { ink, color } = this;
    const its = this.hubOf(f.client), middle = this.clientAt(f.client), hub = toward(its, middle, its.radius);
    const client = this.tiny && !this.many ? toward(middle, its, this.dot + 6) : middle; // on a phone it would lie on its client most of the way
    const [a, b] = f.kind === REQUEST ? [client, hub] : [hub, client];
    let share = Math.min(1, Math.max(0, this.along(f)));
    if (still.matches) share = 0.5;
    if (f.lost) share = Math.min(share, 0.5);
    f.isGone = f.lost && share === 0.5; // it is lost half way, and not before
    const side = f.kind === REQUEST ? 1 : -1, length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    // Only a reply passes under a znode: the sign of another frame must not cover the znode's number.
    const isUnder = f.kind === REPLY, aside = isUnder || this.tiny ? 7 : 7 + 14 * this.scale;
    const shift = (this.many ? 0 : f.lost ? this.chip().w / 2 + (this.tiny ? 9 : 5) : aside) * side;
    const across = { x: Math.abs(b.y - a.y) / length, y: Math.abs(b.x - a.x) / length };
    if (f.lost && (b.x - a.x) * (b.y - a.y) > 0) across.y *= -1; // at a right angle, or its sign would be back on the znode
    const p = { x: a.x + (b.x - a.x) * share + shift * across.x, y: a.y + (b.y - a.y) * share + shift * across.y };
    const size = this.many ? 2.2 : this.tiny ? f.kind === REQUEST ? 5.5 : 4.5 : this.small ? 6 : 8 * this.scale;
    f.is = p;
    ink.globalAlpha = focus && f !== focus ? 0.25 : 1;
    ink.fillStyle = ink.strokeStyle = f.kind === REQUEST ? color.request : f.kind === REPLY ? color.reply : color.notification;
    ink.lineWidth = this.tiny ? 1.5 : 2;
    if (this.many) {
      ink.fillRect(p.x - size / 2, p.y - size / 2, size, size);
    } else if (f.kind === REQUEST) {
      if (!WRITES.includes(f.op)) ink.fillStyle = color.paper; // a read is hollow
      arrowhead(ink, p, { x: p.x + (b.x - a.x) / length * size, y: p.y + (b.y - a.y) / length * size }, size * 2);
      ink.stroke();
    } else if (f.kind === REPLY) {
      circle(ink, p, size * 0.8);
      ink.fill();
    } else {
      ink.beginPath();
      for (const [dx, dy] of [[0, -1], [1, 0], [0, 1], [-1, 0]]) ink.lineTo(p.x + dx * size * 1.4, p.y + dy * size * 1.4);
      ink.fill();
      this.text("!", p.x, p.y + 0.5, color.paper, size * 1.6 / this.scale, "800");
    }
    if (f.isGone && f.kind === REPLY) lostReply(ink, p, size * 1.1, color.paper, color.bad);
    else if (f.isGone) cross(ink, p, size * 1.6, color.bad);
    ink.globalAlpha = 1;
  }

  // called names a frame in a word or two.
  called(f) {
    if (f.kind === NOTIFICATION) return say("changed!", "变了！");
    if (f.kind === REQUEST) return OPS[f.op] ?? "";
    if (f.err) return errorName(f.err);
    const done = f.op === 12 ? say(f.names === 1 ? "1 name" : `${f.names} names`, `${f.names} 个名字`)
      : f.op === 1 ? say("created", "已创建") : f.op === 2 ? say("deleted", "已删除") : say("done", "完成");
    return !f.isGone ? done : this.tiny ? say("lost", "丢失") : say(`${done}: lost`, `${done}：丢失`);
  }

  // byHand reports whether the reader has deleted the lock's single znode by hand a moment ago.
  byHand() {
    const last = this.story.phases?.findLast((p) => p.at <= this.t);
    return last?.action?.do === "delete" && this.story.nodes.some(({ to }) => to >= last.at && to <= this.t && this.t < to + BY_HAND);
  }

  // over reports whether a frame is drawn over the znodes, and not under them.
  over() { return true; }

  // along returns the share of its way that a frame has covered.
  along(f) { return (this.t - f.from) / Math.max(1, f.to - f.from); }

  flying() { return this.story.frames.filter((f) => f.from <= this.t && this.t < f.to); }

  // labels reports whether there is room for a frame's name.
  labels() { return true; }

  // label writes words beside a point, at the first of several places where they would not overlap with something.
  // They may cut the line of the znodes. If isFocus is set and the drawing is not tiny, it writes them anyway.
  label(words, p, isFocus) {
    const { ink, color, middle, scale } = this;
    const size = this.tiny ? 10 : 13;
    ink.font = `600 ${size * scale}px system-ui, "DejaVu Sans", sans-serif`;
    const w = ink.measureText(words).width + 8, h = 18 * scale, over = 20 * scale;
    const inward = (p.x > middle.x + 20 ? -1 : 1) * (11 + w / 2);
    const places = [[inward, 0], [-inward, 0], [inward, -over], [-inward, over], [-inward, -over], [inward, over], [0, -over], [0, over]];
    const meets = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
    const off = (from, length) => Math.max(0, from, -from - length); // how far the box is from the middle
    const onHub = (b) => Math.hypot(off(b.x - middle.x, w), off(b.y - middle.y, h)) < this.radius.hub + 2;
    const isFree = (b) => b.x >= 0 && b.x + w <= this.width && b.y >= 0 && !onHub(b) && ![...this.labelled, ...this.taken].some((t) => meets(b, t));
    const boxes = places.map(([dx, dy]) => ({ x: p.x + dx - w / 2, y: p.y + dy - h / 2, w, h, words }));
    const box = boxes.find(isFree) ?? (isFocus && !this.tiny ? boxes[0] : null);
    if (!box) return;
    this.labelled.push(box);
    ink.fillStyle = color.paper;
    ink.fillRect(box.x, box.y, w, h);
    this.text(words, box.x + w / 2, box.y + h / 2 + 1, color.ink, size, "600");
  }

  // chips returns the places of the znodes and the clients, which no name may cover.
  chips() {
    const { w, h } = this.chip(), { story, t } = this, dot = this.dot + (this.tiny ? 7 : 10); // with the ring of its session
    const nodes = story.nodes.flatMap((n, i) => { const p = this.nodeAt(i); return there(n, t) ? [{ x: p.x - w / 2, y: p.y - h / 2, w, h }] : []; });
    return [...nodes, ...story.clients.map((c, i) => { const p = this.clientAt(i); return { x: p.x - dot, y: p.y - dot, w: 2 * dot, h: 2 * dot }; })];
  }

  // tally counts what has passed since the phase began.
  tally(phase) {
    let notifications = 0, requests = 0, writes = 0, bytes = 0;
    for (const f of this.story.frames) {
      const at = f.kind === NOTIFICATION ? f.from : f.at; // it counts from when the server notifies
      const passed = at >= phase.at && at <= this.t && f.op !== -10 && f.op !== -11;
      if (!passed) continue;
      if (f.kind === REQUEST) requests++;
      else bytes += f.bytes;
      if (f.kind === REQUEST && WRITES.includes(f.op)) writes++;
      if (f.kind === NOTIFICATION) notifications++;
    }
    return { notifications, requests, writes, bytes };
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
  ink.closePath();
  ink.fill();
}
function cross(ink, p, size, stroke) {
  ink.strokeStyle = stroke;
  ink.lineWidth = 3;
  line(ink, { x: p.x - size / 2, y: p.y - size / 2 }, { x: p.x + size / 2, y: p.y + size / 2 });
  line(ink, { x: p.x + size / 2, y: p.y - size / 2 }, { x: p.x - size / 2, y: p.y + size / 2 });
}

// lostReply draws a reply that is lost: its disc is empty, and struck through once.
function lostReply(ink, p, radius, paper, stroke) {
  circle(ink, p, radius);
  ink.fillStyle = paper;
  ink.fill();
  ink.strokeStyle = stroke;
  ink.lineWidth = 2.5;
  ink.stroke();
  line(ink, { x: p.x - radius * 0.7, y: p.y + radius * 0.7 }, { x: p.x + radius * 0.7, y: p.y - radius * 0.7 });
}
