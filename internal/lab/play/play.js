// The page of make play. It has no state of the locks of its own: everything that it shows comes
// from the service, and each click sends the service a command. The page only draws a frame on its
// way for longer than that took, so that the eye can follow.

const ARMED = {
  losecreate: text("create reply will be lost", "create 的响应将丢失"), losedelete: text("delete reply will be lost", "delete 的响应将丢失"),
  delaylist: text("next list will be late", "下次列目录的响应将迟到"),
};
const QUICK = { idle: "lock", waits: "giveup", holds: "unlock", reads: "unlock" }; // the button beside a client
const STATES = { up: text("up", "正常"), killed: text("killed", "已被杀"), stopped: text("stopped", "已停住"), cut: text("partitioned", "被切断") };
const PROCESS = { starting: text("starting", "正在启动"), running: text("running", "运行中"), stopped: text("stopped", "已停住"), dead: text("dead", "已结束") };
const NO_MAJORITY = [
  text("None of the three servers answers: nothing can be read or written, and sessions cannot end.",
    "三台服务器都没有响应：既不能读，也不能写，会话也无法结束。"),
  text("Only one of three servers answers: without a majority nothing can be written, and sessions cannot end.",
    "三台服务器只有一台响应：没有过半，所以不能写，会话也无法结束。"),
];
const GONE = text("The service does not answer. If make play has ended, start it again, and open the address that it prints.",
  "服务没有响应。如果 make play 已经结束，请重新启动，再打开它给出的地址。");

const lessonName = (l) => say(`Lesson ${l.n}: ${l.title.en}`, `第 ${l.n} 课：${l.title.zh}`);
const clientAction = (i, what) => what === "pause" ? say(`Do it for real: stop client ${i} for ${pause()} s`, `真做一遍：让客户端 ${i} 停住 ${pause()} 秒`)
  : i < 0 && what === "lock" ? say("Let them ask", "让它们请求加锁")
  : i < 0 ? capital(actionName({ do: what })) : say(`Client ${i}: ${COMMANDS[what].en}`, `客户端 ${i}：${COMMANDS[what].zh}`);

const ABOUT = text("Many programs on many computers want to change the same data. A distributed lock lets only one of them do it at a time. Here a ZooKeeper server keeps the lock, in small files that are called znodes. The clients that you see are real processes, each of which has a session with the server. A lesson takes two or three minutes.",
  "许多机器上的许多程序都想修改同一份数据。有了分布式锁，同一时刻只有一个程序能修改。在这里，锁由一台 ZooKeeper 服务器保管，放在叫做 znode 的小文件里。你看到的客户端都是真实的进程，每个客户端都与服务器有一个会话。一课大约两三分钟。");

// wants says what a client comes for, where the reader chooses that.
const wants = (i, what) => what === "read" ? say(`Client ${i}, to read`, `客户端 ${i}，要读`) : say(`Client ${i}, to write`, `客户端 ${i}，要写`);

// called returns a client's name, in both languages.
const called = (i) => text("client " + i, "客户端 " + i);

const $ = (id) => document.getElementById(id);
const { token } = document.body.dataset;
// FLIGHT is how many milliseconds the page draws a frame on its way. LAG is how many milliseconds the
// page may be behind the wire. FLIGHTS is how many frames of one client are drawn at the same time: if
// a client polls fast, some are left out.
const FLIGHT = 220, LAG = 1300, FLIGHTS = 6;
// WRITE_FLIGHT is how many microseconds a recorded write flies to the store, where a second of the record is one of the show.
const WRITE_FLIGHT = 400_000;
const SESSION = 5000; // milliseconds that a session lasts without a message of its client
const SAID = BY_HAND / 1000; // milliseconds, as the times of the page are
const COMPLAINT = 5000; // milliseconds that an error is shown
const narrow = matchMedia("(max-width: 760px)"); // as in play.css
const upright = matchMedia("(max-width: 760px) and (min-height: 521px)"); // as there: a phone

// onPage converts a moment of the service to the clock of the page. The smallest offset seen is the
// best one, because news can be late and never early.
let offset = Infinity;
const onPage = (microseconds) => microseconds / 1000 + offset;

// ---- A board: what the service has reported of one lock ----

// A LiveStage draws the present state. Its clock is the page's, in milliseconds.
class LiveStage extends Stage {
  // labels reports whether a frame gets a label. Where clients poll, labels would overlap.
  labels(f) { return this.story.past || this.flying().filter((g) => g.client === f.client).length <= 2; }

  // ring draws a client's session, unless the lesson is about something else.
  ring(...all) { if (!isCalm()) super.ring(...all); }

  byHand() {
    const { past, deleted } = this.story;
    return past ? super.byHand() : this.t >= deleted && this.t < deleted + SAID;
  }

  // over reports whether a frame is drawn over the znodes and the clients, as a held frame is. Where the wire is only
  // slow, a reply must not cover a number.
  over(f) { return this.story.past || f.to === Infinity && (f.kind !== REPLY || service.pace === "pause"); }

  // along returns how much of its way a frame has gone, from 0 to 1. A frame that is held on the wire
  // stops on the way.
  along(f) {
    if (this.story.past) return super.along(f);
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

  // take receives the news of a moment: everything about a new lock, or what has changed, or null for
  // an empty board.
  take(news, told) {
    const laid = news && "lock" in news;
    const { since } = this.is?.counters ?? {}; // the last action
    if (!news || laid) this.is = news;
    this.root.hidden = !this.is;
    if (!news) return;
    if (laid) {
      this.width = 0; // its drawing has no size yet
      this.nodes = new Map();
      this.watches = new Map();
      this.flights = new Map(); // the frames that the service reports as on their way; null: not drawn
      this.log = new Map();
      this.clients = [];
      this.changes = []; // what the drawing will change, and when: the moment of the page and, where it is of a client, that of the wire
      this.story = { step: news.lock, awake: [], frames: [], writes: [], session: SESSION };
      this.stage.show(this.story, news.name, news.lesson);
    }
    Object.assign(this.is, news);
    if (laid || this.is.counters.since !== since) Object.assign(this.story, { listed: [], notified: new Map() }); // since the last action
    if (laid) this.banners = [];
    if (news.banners) this.next = { told, banners: news.banners };
    const chapter = this.root.querySelector(".chapter");
    chapter.hidden = !this.is.step;
    chapter.href = this.chapter();
    this.story.step = this.is.step;
    const all = (what) => Object.entries(news[what] ?? {});
    for (const [i, f] of all("frames").map(([i, row]) => [i, frame(row)])) if (!laid || f.to < 0) this.fly(i, f);
    for (const w of (news.store?.log ?? []).filter((w) => !this.story.writes.some((known) => known.at === w.at)).reverse()) {
      const from = laid ? -FLIGHT : this.moment(w.at, w.client); // after what let its client write
      const to = from + 3 * FLIGHT;
      this.story.writes.push({ ...w, from, to });
      this.changes.push({ at: to, told: w.at, client: w.client });
    }
    const at = (moment, client) => laid ? 0 : this.moment(moment, client);
    this.is.rows.forEach((r, i) => {
      const c = this.clients[i] ??= { name: called(i), slot: 2 * i, states: [{ at: 0, is: r.is }], beats: [], over: -1 }, { states } = c;
      c.server = r.server;
      c.pending = r.pending;
      c.token = r.token;
      c.beats = r.heard ? [onPage(r.heard)] : [];
      c.over = r.over ? onPage(r.over) : -1;
      const isAtOnce = !laid && /^(crashed|stopped)/.test(r.is); // no message is its cause
      const since = isAtOnce ? performance.now() : at(r.since, i);
      if (states.at(-1).is !== r.is) states.push({ at: Math.max(states.at(-1).at, since), is: r.is });
    });
    const lasts = (of, i, x, client) => {
      const known = of.get(i);
      if (known && x.to >= 0) known.to = at(x.to, client);
      if (!known && x.to < 0) of.set(i, { ...x, from: at(x.from, client) });
    };
    for (const [i, n] of all("nodes")) lasts(this.nodes, i, n, n.owner);
    const [deleted] = this.is.counters.action?.do === "delete" ? [...this.nodes.values()].filter((n) => n.to >= 0) : [];
    if (deleted) {
      this.story.deleted = deleted.to; // by hand, and seen so from then on
      this.changes.push({ at: deleted.to + SAID });
    }
    for (const [i, w] of all("watches").map(([i, row]) => [i, watch(row)])) lasts(this.watches, i, w, w.client);
    this.arrange();
    for (const [i, l] of all("log")) {
      const from = this.log.get(Number(i))?.from ?? (laid || l.what === "acted" ? 0 : this.moment(l.at, (l.clients ?? l.banner?.clients ?? [l.write?.client])[0]));
      this.log.set(Number(i), { ...l, i: Number(i), side: this.i, from }).delete(i - 200);
    }
  }

  chapter() { return `/book/${document.documentElement.lang === "en" ? "" : "zh-CN/"}step0${this.is.step}.html`; }

  // moment returns when the page shows what happened to a client at a moment of the wire. It is after
  // the arrival of all frames that could be the cause: the client's own, and all write requests.
  moment(told, client) {
    const now = performance.now();
    let at = now;
    for (const f of this.story.frames) {
      if (f.arrived >= 0 && f.arrived <= told && (f.client === client || f.writes)) at = Math.max(at, f.to);
    }
    at = Math.min(at, now + LAG);
    for (const w of this.story.writes) if (w.at <= told && w.client === client) at = Math.max(at, w.to);
    if (at > now) this.changes.push({ at, told, client });
    return at;
  }

  // shows reports whether the page has drawn all that happened until a moment of the wire. What is said
  // of it comes after that.
  shows(told) {
    const now = performance.now(), { frames, writes } = this.story;
    return !frames.some((f) => f.arrived >= 0 && f.arrived <= told && f.to > now) && !writes.some((w) => w.at <= told && w.to > now)
      && this.clients.every((c) => c.states.at(-1).at <= now);
  }

  // drawn returns a recorded story as far as the drawing is. It may be LAG behind.
  drawn(story) {
    const now = performance.now();
    const ends = story.clients.map((_, i) => {
      const toCome = this.changes.filter(({ at, client }) => at > now && client === i);
      const next = Math.min(...toCome.map(({ told }) => told)) - story.start;
      return Math.max(0, next - 1); // how it begins is drawn
    });
    return upTo(story, (client) => ends[client]);
  }

  // lines returns the lines of the log, newest first.
  lines() { return [...this.log.values()].filter((l) => l.from <= performance.now()).sort((a, b) => b.i - a.i); }

  // arrange makes the story that the stage draws from the present state, and forgets what is over.
  arrange() {
    const { story } = this, places = new Map(), now = performance.now();
    for (const c of this.clients) while (c.states[1]?.at <= now) c.states.shift();
    for (const all of [this.nodes, this.watches]) for (const [i, x] of all) if (x.to >= 0 && x.to <= now) all.delete(i);
    story.clients = this.clients;
    story.servers = service.servers;
    story.roles = roles(this.is.counters.action);
    story.slots = 2 * this.clients.length;
    story.nodes = [...this.nodes].map(([i, n], at) => { places.set(Number(i), at); return n; });
    story.watches = [...this.watches.values()].filter((w) => w.node < 0 || places.has(w.node))
      .map((w) => ({ ...w, node: places.get(w.node) ?? -1 }));
  }

  // fly draws a frame on its way. A frame leaves only after its causes have arrived, but the page is
  // never more than LAG behind the wire.
  fly(i, told) {
    if (told.client < 0) return;
    const now = performance.now(), { story } = this;
    let f = this.flights.get(i);
    if (f === undefined) {
      const crowd = story.frames.filter((g) => g.client === told.client && g.to > now).length >= FLIGHTS;
      if (crowd) {
        f = null;
        if (told.kind === REPLY) this.wake(told.client, now); // it has looked again, although that is not drawn
      }
      else story.frames.push(f = { ...told, from: this.moment(told.from, told.client), to: Infinity, share: 0, writes: told.kind === REQUEST && (told.op === 1 || told.op === 2), on: this.nodes.get(String(told.node)) });
      this.flights.set(i, f);
    }
    if (f?.to === Infinity && !f.told) {
      f.told = true;
      if (f.kind === REPLY) this.wake(f.client, f.from + FLIGHT);
    }
    if (told.to < 0) return;
    this.flights.delete(i);
    if (!f) return;
    if (now > f.from) { // it was held: draw the rest of its way
      this.stage.t = now;
      f.share = this.stage.along(f);
      f.from = now;
    }
    Object.assign(f, { to: f.from + FLIGHT, arrived: told.to, lost: told.lost, err: told.err, names: told.names });
    if (f.kind === REPLY && f.op === 12 && !f.lost && learns()) story.listed = [f];
    if (f.kind !== NOTIFICATION || f.lost) return;
    story.awake.push({ client: f.client, from: f.to, to: -1 });
    if (isCalm()) story.notified.set(f.client, f.to); // in other lessons the ring is that of the session
  }

  // wake ends the time in which a client is drawn as awake, because the client has looked again.
  wake(client, at) {
    for (const a of this.story.awake) if (a.client === client && a.to < 0) a.to = Math.max(at, a.from + FLIGHT);
  }

  // draw draws the present moment, and reports whether the next one will look different.
  draw(now) {
    const { story } = this;
    if (!this.width) return false;
    if (past.at === null && !isDragging()) this.stage.story = story;
    story.frames = story.frames.filter((f) => now < f.to);
    if (this.stage.story.past) {
      const t = isDragging() ? this.paused : this.recorded();
      this.stage.story.roles = roles(this.stage.story.phases.findLast((p) => p.at <= t)?.action);
      const isFocus = past.focus?.story === this.stage.story && !past.focus.best && !(past.focus.all?.length > 1);
      this.stage.draw(t, isFocus ? past.focus.frame : null);
      return past.focus?.rest > 0;
    }
    story.awake = story.awake.filter((a) => this.state(a.client) === "waits" && (a.to < 0 || now < a.to)); // a holder need not look
    this.stage.draw(now, null);
    if (this.changes.some(({ at }) => at <= now)) {
      this.changes = this.changes.filter(({ at }) => at > now);
      soon();
    }
    this.ticks = !isCalm() && story.clients.some((c) => c.beats.length && c.over < 0); // its ring moves or is renewed
    return this.changes.length > 0 || story.frames.some((f) => f.to !== Infinity || now - f.from < 5 * FLIGHT) || story.awake.some((a) => a.to > 0) || story.writes.some((w) => now < w.to);
  }

  // recorded returns the recorded moment that is shown.
  recorded() {
    const i = live().indexOf(this), { best, rest } = past.focus ?? {};
    return best?.[i] ? best[i] - rest : past.clock.recorded(i, past.at);
  }

  // hits lays a button over each client that is drawn: it shows what can be done to the client. Tab stops at the chosen
  // client. In a crowd, and in the past, there are none.
  hits() {
    const { stage } = this, isNone = !this.width || stage.many || past.at !== null || isDragging(), size = Math.max(28, stage.dot * 3.4);
    fill(this.root.querySelector(".hits"), isNone ? [] : this.clients.map((_, i) => {
      const b = button({ choose: String(i) }, ""), { x, y } = stage.clientAt(i);
      b.tabIndex = i === chosen ? 0 : -1;
      b.ariaLabel = capital(clientName(i)) + say(": ", "：") + state(this, i)[0];
      b.style = `left: ${x}px; top: ${y}px; width: ${size}px; height: ${size}px`;
      return b;
    }));
  }

  // words writes everything around the drawing.
  words() {
    const { root, is, stage } = this, l = learns() ? service.lessons[service.course.lesson - 1] : null;
    const name = this.i && l?.untold.en && !isOver() ? l.untold : is.name;
    if (stage.named.step !== name) {
      stage.named.step = name;
      stage.write();
    }
    this.hits();
    const course = later ?? service.course; // later: the picture does not show yet what did the task
    const waits = l && course.done > 0 && l.tasks[course.done]?.do !== ""; // for the reader
    const last = waits ? course.counts[this.i] : null;
    const isPast = past.at !== null && stage.story.past;
    const counters = isPast ? this.counted() : last?.since === is.counters.since ? last : is.counters; // what the result says, although clients still poll
    const since = counters === last ? say("from the press to the result:", "从按下到出结果：") : say("since the last task:", "自上个任务以来：");
    set(root.querySelector(".task dt"), since);
    for (const name of ["notifications", "requests", "writes", "bytes"]) set(root.querySelector(`[data-count=${name}]`), counters[name].toLocaleString("en"));
    set(root.querySelector("[data-count=action]"), counters.action ? actionName(counters.action) : "–");
    const mine = root.querySelector(".build");
    mine.hidden = !is.complaint && !is.building;
    mine.classList.toggle("works", is.building);
    set(mine, is.building ? say("The lock is being built …", "正在编译这把锁 ……") : is.complaint);
    if (this.next && this.shows(this.next.told)) {
      this.banners = this.next.banners;
      this.next = null;
    }
    const up = service.servers.filter((s) => s.state === "up").length, majority = up > service.servers.length / 2;
    const banners = [...(majority ? [] : [make("p", {}, make("strong", {}, say(NO_MAJORITY[up])))]),
      ...this.banners.map((b) => make("p", { className: b.breaks ? "" : "note" }, make("span", { className: "whose" }, say(`Step ${is.step}: `, `第 ${is.step} 步：`)), make("strong", {}, capital(bannerText(b))), " ",
        ...(b.breaks ? [make(is.step ? "a" : "span", is.step ? { href: this.chapter(), target: "_blank" } : {}, say(`The broken promise: ${service.properties[b.breaks].en}.`, `违背的承诺：${service.properties[b.breaks].zh}。`))] : [])))];
    fill(root.querySelector(".banners"), isDragging() ? this.pauseSays() : banners);
    const now = performance.now();
    const t = isPast ? stage.t : now; // the list is of the moment that is drawn
    const listed = isPast ? stage.story.nodes : [...this.nodes.values()];
    const isIn = (i) => inside(isPast ? i < 0 ? "idle" : stateAt(stage.story.clients[i], t) : this.state(i));
    const queue = listed.filter((n) => there(n, t)).sort((m, n) => place(m) - place(n) || m.from - n.from);
    const ls = root.querySelector(".ls"), lists = (most) => {
      const owner = (n) => n.owner < 0 ? say("of no client here", "不属于这里的任何人") : clientName(n.owner);
      const item = (n) => make("li", { className: isIn(n.owner) ? "in" : "" }, brief(n.name, stage.isTagged ? 2 : 0), make("b", {}, ` ${owner(n)}`));
      const shown = queue.slice(0, most).map(item);
      if (!queue.length) shown.push(make("li", {}, say("empty", "空")));
      if (queue.length > most) shown.push(make("li", { className: "more" }, say(`and ${queue.length - most} more`, `还有 ${queue.length - most} 个`)));
      fill(ls.querySelector("ol"), shown);
    };
    let most = LISTED;
    lists(most);
    const isTooLong = () => ls.scrollHeight > ls.clientHeight;
    while (l && most > 1 && isTooLong()) { // in a lesson, those for which there is room
      most--;
      lists(most);
    }
    const { token: greatest, log: writes } = is.store;
    fill(root.querySelector(".store"), [make("b", {}, say("The store", "存储")), " ", !writes?.length ? say("nothing written yet", "还没有写入过") : greatest ? say(`greatest token ${tokenName(greatest)}`, `最大令牌 ${tokenName(greatest)}`) : "",
      ...(writes ?? []).slice(0, 3).map((w) => make("p", {}, writeLine(w)))]);
    if (!root.querySelector("details").open) return;
    const { clients, nodes, watches } = this.story;
    const hasTokens = Number(is.step) >= 5 || is.rows.some((r) => r.token);
    root.querySelector("table").classList.toggle("tokenless", !hasTokens);
    fill(root.querySelector("tbody"), clients.map((c, i) => row(say(c.name), stateName(this.state(i), this.owns(i)),
      nodes.filter((n) => n.owner === i && there(n, now)).map(number).join(", ") || say("none", "无"),
      watches.filter((w) => w.client === i && there(w, now)).map((w) => target(this.story, w)).join(", ") || say("nothing", "无"),
      say(PROCESS[is.rows[i]?.process] ?? text("", "")), say(STATES[is.rows[i]?.line] ?? text("", "")), tokenName(is.rows[i]?.token || "–"))));
  }

  // counted returns what had been counted until the recorded moment that is drawn. How a lesson is set up is not counted.
  counted() {
    const { stage } = this, { at, action } = stage.story.phases.findLast((p) => p.at <= stage.t) ?? { at: Infinity };
    return { ...stage.tally(action?.do === "lesson" ? { at: Infinity } : { at }), action };
  }

  // owns reports whether a znode of a client exists.
  owns(i) { return [...this.nodes.values()].some((n) => n.owner === i && there(n, performance.now())); }

  state(i) { return this.clients[i] ? stateAt(this.clients[i], performance.now()) : "idle"; }
}

// writeLine describes a write to the store.
function writeLine(w) {
  const who = clientName(w.client), with_ = w.token ? say(`${who}, token ${tokenName(w.token)}`, `${who}，令牌 ${tokenName(w.token)}`) : who;
  return say(`${with_}: ${verdict(w)}`, `${with_}：${verdict(w)}`);
}

// ---- Writing into the page ----

function make(tag, properties, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

const row = (first, ...rest) => make("tr", {}, make("th", { scope: "row" }, first), ...rest.map((text) => make("td", {}, String(text))));

// set and fill write only what is new: a screen reader reads a live region at each change, and the
// element under the mouse or with the focus must stay.
function set(e, text) { if (e.said !== text) e.textContent = e.said = text; }
function fill(e, children) {
  const old = [...e.childNodes];
  children = children.map((c) => typeof c === "string" ? document.createTextNode(c) : c);
  const at = e.contains(document.activeElement) ? { ...document.activeElement.dataset } : null;
  children.forEach((c, i) => { if (!old[i]) e.append(c); else if (!old[i].isEqualNode(c)) old[i].replaceWith(c); });
  old.slice(children.length).forEach((o) => o.remove());
  if (at && !e.contains(document.activeElement)) {
    e.querySelector(at.choose ? `[data-choose="${at.choose}"]` : at.guess ? `[data-guess="${at.guess}"]` : `[data-client="${at.client}"], [data-n="${at.n}"]`)?.focus();
  }
}

function options(select, list, chosen) {
  fill(select, list.map(([value, text]) => new Option(text, value)));
  select.value = chosen;
}

// ---- What the service reports ----

const boards = [new Board(0), new Board(1)];
const service = JSON.parse($("choice").textContent); // locks, lessons, properties, max, crowds, pauses; then the news
service.pauses.stories.forEach((story) => ready(story, WRITE_FLIGHT));
const RENDERS = 100; // milliseconds from one render to the next, at least
const LISTED = 5; // how many znodes of the queue are listed at most
let chosen = 0, dirty = false, rendered = -RENDERS, choosing = false, freely = false, learned = false, awaited = 0, led = "", laid = 0, located = "", aim = null;
let later = null; // a task of the lesson is done, and the page has not yet drawn what did it

function take({ left, right, now, course, ...rest }) {
  Object.assign(service, rest);
  offset = Math.min(offset, performance.now() - now / 1000);
  [left, right].forEach((news, i) => news !== undefined && boards[i].take(news, now));
  const hasMoved = course?.lesson === service.course?.lesson && course?.done > service.course?.done;
  if (course) later = hasMoved ? course : null;
  if (course && !hasMoved) service.course = course;
  wish();
  soon();
}

// soon renders what is new: at once, if the last render was more than RENDERS ago.
function soon() {
  if (dirty) return;
  dirty = true;
  setTimeout(render, Math.max(0, rendered + RENDERS - performance.now()));
}

// wish asks for the lesson or the locks that the address names, once.
function wish() {
  wish = () => {};
  if (location.hash) arrives();
}

// chooses asks for the locks that the address names.
function chooses() {
  const locks = named();
  if (locks) [0, 1].forEach((i) => (locks[i] ?? "") !== (boards[i].is?.lock ?? "") && ask({ do: "choose", board: i, lock: locks[i] ?? "" }));
}

// named returns the locks that the address names, or null.
function named() {
  try {
    return location.hash && !location.hash.startsWith("#lesson") ? decodeURIComponent(location.hash.slice(1)).split("/") : null;
  } catch { // it is not an address of this page
    return null;
  }
}

// learns reports whether the page shows a lesson.
const learns = () => service.course?.lesson > 0 && document.body.classList.contains("learning");

// isCalm reports whether it shows one in which nothing goes wrong.
const isCalm = () => document.body.classList.contains("calm");

const live = () => boards.filter((b) => b.is);

// crowd returns the clients of the board that has most, because a lock that cannot be built has none.
const crowd = () => live().map((b) => b.clients).reduce((a, b) => b.length > a.length ? b : a, []);

// render writes what has changed.
function render() {
  dirty = false; // first: if this render fails, soon can still ask for the next one
  if (!service.course) return; // the service has sent nothing yet
  if (later && live().every((b) => b.shows(later.since))) {
    service.course = later;
    later = null;
  }
  settles();
  document.body.classList.remove("unknown");
  rendered = performance.now();
  const pair = live().length > 1;
  $("stages").classList.toggle("pair", pair);
  boards.forEach((b, i) => options($("lock" + i), [...(i ? [["", say("nothing", "无")]] : []), ...service.locks.map((l) => [l.key, say(l.name)])], b.is?.lock ?? ""));
  locate();
  lesson();
  catchUp();
  const n = crowd().length;
  set($("count"), say(`${n} of at most ${service.max} clients`, `${n} 个客户端（最多 ${service.max} 个）`));
  set($("held"), service.pace === "real" || !service.held ? "" : say(`${service.held} on the wire`, `${service.held} 条在路上`));
  $("proofs").hidden = !live().some((b) => /^(mutex|rwmutex|cohort)$/.test(b.is.lock));
  legend();
  $("rests").hidden = !service.rests;
  $("shared").hidden = !(service.pages > 1);
  set($("shared"), say(`open in ${service.pages} windows`, `已在 ${service.pages} 个窗口打开`) + (narrow.matches ? "" : say(": all show the same", "，显示的都一样")));
  for (const b of document.querySelectorAll("[data-pace]")) b.setAttribute("aria-pressed", b.dataset.pace === service.pace);
  servers();
  for (const b of live()) b.words();
  everybody();
  list();
  log();
  timeline();
  const isOfAnotherSize = (b) => {
    const isNew = !b.width && !choosing, hasOtherClients = b.many !== b.clients.length > 40;
    const hasOtherTags = b.tagged !== b.story.nodes.some(tag), hasOtherStore = b.stores !== hasStore();
    return isNew || hasOtherClients || hasOtherTags || hasOtherStore;
  };
  if (live().some(isOfAnotherSize)) resize();
  strips();
  animate();
  if (later || live().some((b) => b.next)) setTimeout(soon, RENDERS);
}

// SIGNS are the signs that the legend explains in each lesson: those that no word beside them explains.
const SIGNS = { 1: ["writes", "creator", "rings", "believes", "silence", "both", "cut"], 2: ["writes", "reads", "believes", "silence"],
  3: ["write", "read", "reply", "notification", "notified", "watches", "awake", "waits", "znode"],
  4: ["writes", "reads", "watches", "awake", "lost", "znode", "orphan", "ids", "rings", "believes", "bar", "silence", "cut"],
  5: ["tokens", "believes", "stopped", "both", "silence"],
  6: ["writes", "reads", "reply", "notification", "notified", "watches", "awake", "kinds", "believes", "bar", "cut"] };

// legend shows the signs of the lesson, or all that the locks can show.
function legend() {
  const steps = live().map((b) => Number(b.is.step));
  const hasIds = steps.some((step) => step >= 5), isShared = steps.includes(6);
  const hasTokens = hasIds || live().some((b) => b.is.rows.some((r) => r.token));
  const onlyHere = { rings: service.course.lesson > 0, ids: hasIds, kinds: isShared, tokens: hasTokens,
    creator: steps.includes(1), notified: false, orphan: false, writes: false, reads: false, believes: false, bar: false, stopped: false,
    both: false, silence: false, cut: false };
  const signs = learns() && SIGNS[service.course.lesson];
  const { lesson, done } = service.course, isSeen = { ids: lesson !== 4 || done > 0, orphan: done > 0, both: live().some((b) => b.strip?.both.length), cut: live().some((b) => b.strip?.breaks.length) };
  for (const li of $("legend").querySelectorAll("li:not(#proofs)")) {
    const { sign } = li.dataset;
    li.hidden = signs ? !signs.includes(sign) : onlyHere[sign] === false;
    li.style.visibility = [1, 4].includes(lesson) && isSeen[sign] === false ? "hidden" : ""; // it keeps its place
  }
  $("equal").hidden = !isShared;
}

// locate keeps the address up to date. The address names the lesson and its task, or the locks.
// Another lesson or task is another place, so the Back button returns to the one before.
function locate() {
  const { course, lessons } = service, inLesson = course.lesson && !freely;
  const tasks = inLesson && lessons[course.lesson - 1].tasks.length;
  const at = inLesson ? `#lesson-${course.lesson}/${Math.min(course.done + 1, tasks)}` : "#" + live().map((b) => b.is.lock).join("/");
  if (course.lesson === awaited) awaited = 0;
  const isOnItsWay = aim && inLesson; // the page is catching up to the task that the address names
  if (awaited || isOnItsWay || choosing || !live().length || at === located) return;
  const isPlace = located !== "" && (inLesson || located.startsWith("#lesson"));
  located = at;
  address(at, isPlace && location.hash !== at);
}

// arrives opens what the address names: a lesson, the choice of a lesson, or locks.
function arrives() {
  if (location.hash === located) return start(false);
  if (location.hash === "#lessons") return start(true);
  const [n = 0, task = 1] = location.hash.match(/^#lesson-(\d+)(?:\/(\d+))?/)?.slice(1).map((digits) => Number(digits ?? 1)) ?? [];
  start(false);
  if (n === 0) return chooses();
  const { course, lessons } = service;
  if (n > lessons.length) return;
  const last = lessons[n - 1].tasks.length - 1;
  const isThere = n === course.lesson && task - 1 >= Math.min(course.done, last); // a reload keeps a lesson that is over
  freely = false;
  aim = { n, tasks: Math.min(task - 1, last), isLaid: isThere };
  located = `#lesson-${n}/${aim.tasks + 1}`;
  address(located, false);
  if (isThere) return;
  awaited = n;
  ask({ do: "lesson", n });
}
addEventListener("popstate", arrives);

// catchUp does the tasks before the one that the address names, one after the other.
function catchUp() {
  const { course } = service;
  if (!aim) return;
  if (course.lesson === aim.n && !course.begun) aim.isLaid = true; // it is being set up again
  if (!aim.isLaid || course.lesson !== aim.n || !isSet()) return;
  if (course.done >= aim.tasks) return void (aim = null);
  const { do: what, client } = toDo() ?? {}, at = course.done;
  if (isSpoiled()) return void (aim = null);
  if (!what || isDoing() || aim.asked === at) return;
  aim.asked = at;
  ask({ do: what, client });
}

// toDo returns the task that the reader has to do now, if there is one.
function toDo() {
  const { course, lessons } = service;
  return isSet() && !choosing ? lessons[course.lesson - 1].tasks[course.done] : undefined;
}

// isSet reports whether a lesson's scene is set up, and the page has shown it so. Then the task appears, and stays.
let isSettled = false;
const isSet = () => service.course?.begun && isSettled;

// settles notes whether the scene is set up.
function settles() {
  const { course } = service;
  isSettled = course.begun && (isSettled || course.done > 0 || live().every((b) => b.is.rows.every((r, i) => b.state(i) === r.is)));
}

// isNext reports whether a button is the one to press now.
const isNext = (what, client) => isOf(toDo(), { do: what, client }) && !isDoing() && hasGuessed();

// isOf reports whether an action is what a task asks for.
const isOf = (task, action) => task !== undefined && [task.do, task.or].includes(action?.do) && (action.client ?? -1) === task.client;

// isDoing reports whether the button of the task was the last one pressed: the result is awaited.
const isDoing = () => live().every(({ is: { counters } }) => counters.since > service.course.since && isOf(toDo(), counters.action));

// lesson shows the choice of a lesson, or the tasks of the chosen lesson.
function lesson() {
  const { course, lessons } = service, l = lessons[course.lesson - 1];
  const choice = choosing || !l && !live().length;
  document.body.classList.toggle("choosing", choice);
  $("start").hidden = !choice;
  $("lesson").hidden = choice || !l;
  const learning = !$("lesson").hidden && !freely;
  if (document.body.classList.toggle("learning", learning) !== learned) resize();
  learned = learning;
  document.body.classList.toggle("stores", Boolean(l?.drags));
  document.body.classList.toggle("calm", learning && l.calm);
  document.body.classList.toggle("timed", learning && l.timed);
  document.body.classList.toggle("untried", learning && course.done === 0);
  $("strips").hidden = !(learning && l.timed);
  const choosesPause = learning && isDragging();
  $("pause").hidden = !choosesPause;
  $("time").hidden = choosesPause;
  document.body.classList.toggle("sound", learning && l.sound);
  const side = document.querySelector(".side");
  folds(learning, side);
  const home = learning && narrow.matches ? side : $("boards"); // on a phone, below the rest
  if ($("legend").parentElement !== home) home.append($("legend"));
  gloss($("about"), say(ABOUT));
  fill($("start").querySelector("ol"), lessons.map((l) => {
    const b = button({ do: "lesson", n: String(l.n) }, "");
    b.append(make("b", {}, lessonName(l)), " ", make("span", {}, say(l.question)));
    return make("li", {}, b);
  }));
  instead(learning && [3, 6].includes(l.n) && course.begun && course.done === l.tasks.length ? l.n : 0);
  document.body.classList.toggle("paged", learning && !isInstead && (l.sound || l.drags || l.calm)); // on a phone the page itself scrolls
  const titled = learning && upright.matches && !isInstead ? document.querySelector("main") : $("lesson"); // on a phone, above the drawings
  if ($("lesson-title").parentElement !== titled) titled.prepend($("lesson-title"));
  if ($("lesson").hidden) return;
  set($("lesson-title"), lessonName(l));
  set($("lesson").querySelector(".question"), say(l.question));
  gloss($("lesson").querySelector(".situation"), isSet() ? say(l.situation) : say("The clients are being set up …", "客户端正在就位 ……"));
  const over = course.begun && course.done === l.tasks.length;
  fill($("lesson").querySelector("ol"), isSet() ? [...l.tasks.slice(0, course.done + 1).map((t, i) => task(t, i, i < course.done, course.seen[i] ?? [])), ...(over && l.n === 3 ? [herdTask()] : over && l.n === 6 ? [finaleTask()] : [])] : []);
  const next = l.n < lessons.length ? [Object.assign(button({ do: "lesson", n: String(l.n + 1) }, say("Next lesson ▸", "下一课 ▸")), { className: l.n === 3 && !figure?.isSeen() ? "" : "next" })] : [];
  const all = make("span", { className: "links" }, link({ do: "lessons" }, say("All lessons", "全部课程")), " ",
    ...(freely ? [] : [link({ do: "freely" }, say("All controls", "全部按钮"))]));
  const more = button({ do: "lesson", n: String(l.n) }, say("Once more", "再来一次"));
  const last = l.n < lessons.length ? [] : ending();
  const back = button({ do: "lesson", n: String(l.n), task: String(course.done) }, say("Back to before this", "回到这次操作之前"));
  const isCatchingUp = aim && isSet() && course.done < aim.tasks;
  const hasStrayed = strayed() || isOutOfReach() || isSpoiled();
  if (isSpoiled()) back.className = "next";
  const ways = isCatchingUp ? [make("p", {}, say(`On the way to task ${aim.tasks + 1}: the page repeats the earlier tasks.`, `正在回到任务 ${aim.tasks + 1}：页面把前面的任务重做一遍。`))] : over ? [...last, ...next, more, all]
    : hasStrayed ? [make("p", { className: "seen" }, wentWrong()), back, more] : [];
  fill($("lesson").querySelector(".ways"), ways);
  const place = `${course.lesson}/${course.done}`;
  if (led !== place && isSet()) {
    led = place;
    const side = $("lesson").parentElement, isFirst = course.done === 0; // on a small screen the side scrolls
    const button = $("lesson").offsetTop - side.offsetTop + $("lesson").offsetHeight - side.clientHeight;
    $("lesson").scrollTop = isFirst ? 0 : $("lesson").scrollHeight - $("lesson").clientHeight;
    side.scrollTop = isFirst ? 0 : button; // first the title and the question are read
    if (isFirst) scrollTo(0, 0);
    else if (document.documentElement.scrollHeight > innerHeight + 1) [...$("lesson").querySelectorAll("li.done")].at(-1)?.scrollIntoView(); // the page itself scrolls
    if (course.done === 0) {
      laid = Math.max(0, ...live().flatMap((b) => b.lines()).map((l) => l.at));
      paused = guessedAt = 0; // a guess about a pause is made anew
      chosenWay = "";
      seenPauses.clear();
      for (const b of live()) b.story.awake = []; // all clients have settled
      shows(null);
    }
    if (toDo()?.do && toDo().client >= 0) select(toDo().client);
    if (document.activeElement === document.body) $("lesson").querySelector("[data-guess], button.next")?.focus({ preventScroll: true }); // its button is gone
  }
}

// ending says at the end of the last lesson what to do next.
function ending() {
  const command = make("code", { translate: false }, "make exercise");
  const copy = make("button", { type: "button", className: hasFinale() ? "copy next" : "copy" }, say("Copy", "复制"));
  return [
    make("p", {}, make("b", {}, say("Now build step 1:", "自己动手写第 1 步：")), " ", command, " ", copy),
  ];
}
document.addEventListener("click", async (e) => {
  const b = e.target.closest("button.copy");
  if (!b) return;
  try {
    await navigator.clipboard.writeText(b.parentElement.querySelector("code").textContent);
    b.textContent = say("Copied", "已复制");
  } catch { // the browser does not allow it: the command can be read
    getSelection().selectAllChildren(b.parentElement.querySelector("code"));
  }
});

// folds puts the table of the clients and the log into the fold while a lesson has the column, or takes them out.
function folds(learning, side) {
  $("fold").hidden = !learning;
  const isFolded = $("log").parentElement === $("fold");
  if (isFolded === learning) return;
  if (learning) $("fold").append($("clients"), $("log"));
  else side.append($("clients"), $("commands"), $("log"));
}

// strayed reports whether no task of the lesson asks for the last action.
function strayed() {
  const { course, lessons } = service, { tasks } = lessons[course.lesson - 1];
  const action = live()[0]?.is.counters.action;
  return isSet() && action && action.do !== "lesson" && !tasks.some((t) => isOf(t, action));
}

// isOutOfReach reports whether a board does not allow what the task asks for.
function isOutOfReach() {
  const { do: what, client } = toDo() ?? {};
  const can = (b) => b.is.rows[client]?.can.includes(what);
  return what !== undefined && what !== "" && client >= 0 && !isDoing() && !live().every(can);
}

// isSpoiled reports whether a client has lost its session or the lock, although no task makes it lose them.
const isSpoiled = () => isSet() && !isOver() && service.course.spoiled >= 0;

// wentWrong says why the task cannot be done, or is not what was done.
function wentWrong() {
  if (isSpoiled() && !strayed()) {
    const who = clientName(service.course.spoiled);
    return say(`${capital(who)} has lost its session or the lock, although you have done nothing for that: a computer that is too busy can be the cause. The lesson cannot go on from here.`,
      `${who}丢了会话或锁，而这并不是你的操作造成的：可能是这台机器太忙。这一课没法从这里继续。`);
  }
  return say("That is not what the task asks for. ", "这不是任务要求的操作。") + (isOutOfReach() ? say("The task cannot be done now.", "现在没法做这个任务了。") : say("See what happens now; then go on, or go back.", "请看看它的结果，然后继续，或者回去。"));
}

// guesses has what the reader has guessed, by lesson and board.
const guesses = new Map();
const guessKey = (board, { at }) => `${service.course.lesson}/${at}/${board}`;
const guessed = (kind, value) => kind === "number" ? String(value) : kind === "yes" ? (Number(value) ? say("yes", "会") : say("no", "不会"))
  : kind === "write" ? (Number(value) ? say("accepted", "接受") : say("refused", "拒绝"))
  : Number(value) < 0 ? say("nobody", "没有人") : clientName(value);

// UNKNOWN is the guess of a reader who does not know.
const UNKNOWN = "?";

// hasGuessed reports whether the task can be done: first the reader guesses, or says that he does not know.
function hasGuessed() {
  const asks = asked();
  if (toDo()?.or && !chosenWay) return false;
  return !asks || hasChosen() && (asks.kind !== "write" || guessedAt > 0);
}

const lessonGuesses = () => service.lessons[service.course.lesson - 1].guesses;

// asked returns the guess that is asked for before the next task, if there is one.
const asked = () => service.lessons[service.course.lesson - 1]?.guesses.find(({ at }) => at === service.course.done);

// chosenWay is which of the two things that a task allows the reader has chosen to do. The guess is about that.
let chosenWay = "";

// chooseWay chooses one of them. A guess about the other one is taken back.
function chooseWay(what) {
  if (asked()) live().forEach((_, i) => guesses.delete(guessKey(i, asked())));
  chosenWay = what;
  render();
  document.querySelector("#lesson [data-guess], #lesson button.next")?.focus({ preventScroll: true });
  document.querySelector("#lesson li.now > button")?.scrollIntoView({ block: "nearest" });
}

// hasChosen reports whether there is such a guess for each board, or none is asked for.
const hasChosen = () => !asked() || live().every((_, i) => guesses.get(guessKey(i, asked())));

// mark says beside a guess whether it was right.
const mark = (isRight) => make("b", { className: isRight ? "right" : "bad" }, isRight ? " ✓" : " ✗");

// guess asks for a guess about each board, before a task. Beside the result that answers it, it shows
// the guess and what was measured.
function guess(at, about, place) {
  const { course } = service, { kind, text: question, of, at: task, known } = about;
  const clients = crowd().length, measured = course.measured[place];
  const isOver = Boolean(measured), side = (i) => live().length > 1 ? stepOf(i) : "";
  const isHere = isOver ? at === known : at === task && course.done <= task;
  if (!isHere) return [];
  const list = kind === "write" || kind === "yes" ? [["1", guessed(kind, 1)], ["0", guessed(kind, 0)]]
    : [["-1", guessed(kind, -1)], ...[...Array(clients).keys()].map((i) => [String(i), guessed(kind, i)])];
  const fields = live().map((_, i) => {
    const value = guesses.get(guessKey(i, about)), is = isOver && measured[i];
    const isKnown = value && value !== UNKNOWN, isOther = kind === "write" && guessedAt !== pause(); // the guess was about another pause
    const said = isOver && isKnown ? [say(side(i) ? "you guessed " : "You guessed ", "你猜：") + guessed(kind, value) + (isOther ? say(` for ${guessedAt} s`, `（停 ${guessedAt} 秒）`) : ""),
      mark(isOther ? isRightFor(i) : Number(value) === is), ...(isOther ? [say(`, measured for ${pause()} s: `, `；停 ${pause()} 秒实测：`)] : [say(", measured: ", "；实测：")])]
      : [say(`${side(i) ? of.en : capital(of.en)}: `, `${of.zh}：`)];
    if (isOver) return make("span", { className: "guess" }, side(i) && capital(side(i)) + say(": ", "，"), ...said,
      make("b", { className: kind === "write" && isHarmed(live()[i]) ? "bad" : "" }, guessed(kind, is)));
    const field = kind === "number" ? make("input", { type: "number" }) : make("select", {}, new Option(UNKNOWN, ""), ...list.map(([v, words]) => new Option(words, v)));
    for (const [name, v] of Object.entries({ "data-guess": i, min: 0, max: 999, inputmode: "numeric" })) field.setAttribute(name, v);
    if (value && value !== UNKNOWN) field.value = value;
    field.disabled = kind === "write" && hasGuessed();
    return make("label", {}, side(i), " ", field, ...(kind === "write" && isKnown && seenPauses.has(pause()) ? answers(i) : []));
  });
  const unknown = make("button", { type: "button", className: "unknown" }, say("I do not know", "我不知道"));
  const mine = { type: "button", className: hasChosen() ? "final next" : "final", disabled: !hasChosen() };
  const final = make("button", mine, say("That is my guess", "就这么猜"));
  const buttons = kind !== "write" ? [unknown] : hasGuessed() ? [] : [final, unknown];
  if (kind === "write" && isDragging() && !hasGuessed() && !isLate(pause())) {
    const first = say("Drag on, until client 1 holds the lock too.", "继续拖动，直到客户端 1 也持有锁。");
    return [make("p", { className: "guesses" }, first)];
  }
  const words = isOver ? [] : [make("span", { className: "asked" }, say(question)), " "];
  return [make("p", { className: "guesses" }, ...words, ...fields, ...(isOver ? [] : buttons))];
}

// isHarmed reports whether the store has accepted a late write, and has nothing later.
function isHarmed({ is: { store } }) {
  const last = store.log?.[0];
  return Boolean(last?.ok && last.late);
}

const stepOf = (i) => say(`step ${live()[i].is.step}`, `第 ${live()[i].is.step} 步`);

// notes keeps a guess; once there is one for each board, the task can be done.
function notes(board, value) {
  guesses.set(guessKey(board, asked()), value);
  const final = document.querySelector("#lesson .final");
  if (final) final.disabled = !hasChosen();
  final?.classList.toggle("next", hasChosen());
  const buttons = document.querySelectorAll("#lesson li.now > button[data-do]");
  if (!buttons.length) return;
  for (const b of buttons) {
    b.disabled = !hasGuessed();
    b.classList.toggle("next", hasGuessed());
  }
  list();
  soon();
}
document.addEventListener("input", (e) => e.target.dataset.guess !== undefined && notes(e.target.dataset.guess, e.target.value));
document.addEventListener("click", (e) => {
  if (!e.target.closest("button.unknown")) return;
  live().forEach((_, i) => { if (!guesses.get(guessKey(i, asked()))) notes(i, UNKNOWN); });
  if (isDragging()) return settlesGuess();
  document.querySelector("#lesson button.next")?.focus({ preventScroll: true });
});
document.addEventListener("click", (e) => e.target.closest("button.final") && settlesGuess());

// settlesGuess ends the guess about a pause: from now on it cannot be changed, and the recorded runs answer it.
function settlesGuess() {
  guessedAt = pause();
  $("until").focus({ preventScroll: true });
  scrollTo(0, 0); // on a phone, to the strips
  render();
}

// task makes an item of the lesson: what the reader has to do and, once that is done, the result. Of the
// tasks before the last one only the first line is shown.
function task(t, i, done, seen) {
  const isPast = done && i < service.course.done - 1, chooses = !done && t.or && !isDoing();
  const ways = (chooses && !isSpoiled() ? [t.or, t.do] : []).map((what) => {
    const b = Object.assign(button({ do: "way", way: what }, wants(t.client, what)), { className: chosenWay ? "" : "next" });
    b.setAttribute("aria-pressed", what === chosenWay);
    return b;
  });
  const li = make("li", { className: isPast ? "done past" : done ? "done" : "now" }, gloss(make("span"), say(t.text)), ...(ways.length ? [make("p", { className: "choice" }, ...ways)] : []));
  if (chooses && !chosenWay) return li;
  li.append(...(isPast || !done && isDoing() ? [] : lessonGuesses().flatMap((about, place) => guess(i, about, place))));
  if (isPast) return li;
  if (!done && isSpoiled()) return li;
  if (!done && t.do && isDoing()) li.append(make("p", { className: "run" }, say("Wait: the clients are at work …", "请等待：客户端正在运行 ……")));
  if (!done && isDragging() && hasGuessed() && seenPauses.size) li.append(change());
  if (!done && t.do && !isDoing()) li.append(Object.assign(button({ do: t.or ? chosenWay : t.do, client: String(t.client) },
    t.or ? say(`Let ${clientName(t.client)} ask`, `让${clientName(t.client)} 请求加锁`) : clientAction(t.client, t.do)), { className: hasGuessed() ? "next" : "", disabled: !hasGuessed() }));
  const isSame = seen.every((s) => s.en === seen[0].en), steps = live().map((b) => b.is.step);
  for (const [at, s] of (isSame ? seen.slice(0, 1) : seen).entries()) {
    const whose = isSame ? [] : [make("b", {}, say(`Step ${steps[at]}: `, `第 ${steps[at]} 步：`))];
    li.append(make("p", { className: "seen" }, ...whose, say(s)));
  }
  const again = t.moment === "lost" ? [["lost", say("See the loss again", "再看一次响应丢失的时刻")], ["found", say("See client 1 find its znode", "看客户端 1 怎样找到自己的 znode")]]
    : [[t.moment, say("See the decisive moment again", "再看一次起决定作用的时刻")]];
  if (done && t.moment && !isInstead) li.append(...again.map(([moment, words]) => button({ do: "moment", moment }, words)));
  return li;
}

// everybody enables the buttons for all clients that can be pressed now.
function everybody() {
  const rows = live().flatMap((b) => b.is.rows).filter((r) => r.process === "running");
  const can = {
    add: live().some((b) => b.is.rows.length < service.max),
    lock: rows.some((r) => r.can.includes("lock")),
    unlock: rows.some((r) => inside(r.is)),
    clear: live().length > 0,
  };
  for (const b of $("all").querySelectorAll("button")) if (b.dataset.do in can) b.disabled = !can[b.dataset.do];
  const save = $("save"), acted = live().some((b) => b.is.counters.action); // there is a story to keep
  if (save.hasAttribute("href") === acted) return;
  save.toggleAttribute("aria-disabled", !acted);
  acted ? save.href = `/save?token=${token}` : save.removeAttribute("href");
}

function servers() {
  $("servers").hidden = service.servers.length < 2;
  if ($("servers").hidden) return;
  fill($("servers"), service.servers.map((s) => make("span", { className: "server " + s.state }, make("b", {}, say(`server ${s.n}`, `服务器 ${s.n}`)), ` ${s.leader ? "★ " + say("leader", "领导者") : say(STATES[s.state])} `,
    ...(s.state === "up" ? ["kill", "stop", "cut"] : ["restore"]).map((fault) => button({ do: "server", n: String(s.n), fault }, say(FAULTS[fault + "server"]))))));
}

// list shows the clients, and enables the buttons for the chosen one.
function list() {
  const pair = live().length > 1, first = boards[0];
  const names = crowd().map((c) => c.name);
  chosen = Math.max(0, Math.min(chosen, names.length - 1));
  set($("heads"), names.length > 4 ? say(`${names.length} clients`, `${names.length} 个客户端`) : say("client", "客户端"));
  set($("head0"), pair ? say("left", "左边") : say("state", "状态"));
  $("head1").hidden = !pair;
  set($("head1"), say("right", "右边"));
  fill($("clients").querySelector("tbody"), names.map((name, i) => {
    const quick = (b) => b.is?.rows[i] && QUICK[b.state(i)]; // a board that is being laid shows nothing yet
    const same = live().every((b) => quick(b) === quick(first)); // one button for both boards
    const press = (b, on) => {
      const what = quick(b);
      return what && b.is.rows[i]?.can.includes(what) ? [Object.assign(button({ do: what, client: String(i), ...on }, say(COMMANDS[what])), { className: "quick" + (isNext(what, i) ? " next" : ""), ariaLabel: clientAction(i, what) })] : [];
    };
    const tr = make("tr", { className: i === chosen ? "chosen" : "" }, make("th", { scope: "row" }, make("button", { type: "button", textContent: say(name) })),
      ...live().map((b) => make("td", { className: isWrong(b, i) ? "bad" : look(b.state(i), b.owns(i)) }, ...state(b, i), ...(same ? [] : press(b, { board: String(b.i) })))),
      make("td", {}, ...(same ? press(first, {}) : [])));
    tr.querySelector("button").dataset.choose = i;
    tr.querySelector("button").setAttribute("aria-pressed", i === chosen);
    return tr;
  }));
  const any = (f) => live().some((b) => f(b.is.rows[chosen] ?? {}));
  set($("chosen"), names.length ? capital(say(names[chosen])) : say("No clients yet. Add one, or choose a lesson.", "还没有客户端。请加一个，或选一课。"));
  for (const b of $("commands").querySelectorAll("button")) {
    b.disabled = !any((r) => r.can?.includes(b.dataset.do));
    b.classList.toggle("next", isNext(b.dataset.do, chosen));
    if (["losecreate", "losedelete", "delaylist"].includes(b.dataset.do)) b.setAttribute("aria-pressed", any((r) => r.armed?.includes(b.dataset.do)));
  }
  const show = (name, is) => { $("commands").querySelector(`[data-do=${name}]`).hidden = !is; };
  show("read", any((r) => r.reads));
  show("continue", any((r) => r.process === "stopped"));
  show("stop", !any((r) => r.process === "stopped"));
  show("restore", any((r) => r.line === "cut"));
  show("cut", !any((r) => r.line === "cut"));
}

// state describes a client's state, and the faults that are set for it.
function state(b, i) {
  const r = b.is.rows[i];
  if (!r) return ["–"];
  return [isWrong(b, i) ? say("believes it holds", "以为自己持有锁") : stateName(b.state(i), b.owns(i)), ...(r.token && inside(b.state(i)) ? [make("small", { className: "token" }, say(`token ${tokenName(r.token)}`, `令牌 ${tokenName(r.token)}`))] : []),
    ...(r.armed ?? []).map((a) => make("small", {}, say(ARMED[a]))), ...(r.said && !r.is.startsWith("told") ? [make("small", { className: "said", title: r.said }, r.said)] : [])];
}

// isWrong reports whether a client only believes that it holds the lock.
const isWrong = (b, i) => b.state(i) === "holds" && b.banners.some(({ wrong, clients }) => clients?.[0] === i && /^(has lost it: is not|holds it, and)/.test(wrong));

const look = (is, owns) => is === "holds" || is === "reads" ? "in" : trouble(is, owns) ? "bad" : "";

function log() {
  // How a lesson's scene was set up would tell what the reader is asked to guess.
  const isScene = (l) => service.course.lesson && !freely && (!isSet() || l.at <= laid) && l.action?.do !== "lesson";
  const lines = live().flatMap((b) => b.lines()).filter((l) => !isScene(l)).sort((a, b) => b.at - a.at);
  const isKnown = (l) => l.what === "acted" && l.side === 1 && lines.some((o) => o.what === "acted" && o.side === 0 && (o.action.do === "lesson" || Math.abs(o.at - l.at) < 100_000) && actionName(o.action) === actionName(l.action));
  const all = lines.filter((l) => !isKnown(l)).slice(0, 200); // an action on both boards is listed once
  const pair = live().length > 1, ol = $("log").querySelector("ol");
  const item = (l) => make("li", { line: l }, ...(pair && l.what !== "acted" ? [make("b", { className: "side" + l.side }, l.side ? say("right", "右边") : say("left", "左边")), " "] : []), tell(l));
  const fresh = all.indexOf(ol.firstElementChild?.line), old = [...ol.children];
  if (ol.pair !== pair || ol.reader !== reader || fresh < 0 || all.slice(fresh).some((l, i) => old[i]?.line !== l)) return Object.assign(ol, { pair, reader }).replaceChildren(...all.map(item));
  ol.prepend(...all.slice(0, fresh).map(item));
  while (ol.children.length > all.length) ol.lastElementChild.remove();
}

// roles returns what each client wants in a lesson with readers, after an action: R to read, W to write. In other lessons it
// is null.
function roles(action) {
  const l = learns() ? service.lessons[service.course.lesson - 1] : null;
  const asks = (i, what) => action?.client === i && action.do === what;
  return l?.readers ? crowd().map((_, i) => asks(i, "read") || l.readers.includes(i) && !asks(i, "lock") ? "R" : "W") : null;
}

// hasStore reports whether the store is drawn: in a lesson that writes to it, or once somebody has.
const hasStore = () => learns() ? service.lessons[service.course.lesson - 1].drags : live().some((b) => b.is.store.log?.length > 0);

// resize fits the drawings to their places. It draws them at once, because a canvas is blank after its
// size has changed.
function resize() {
  for (const b of live()) {
    b.width = b.stage.canvas.clientWidth;
    b.many = b.clients.length > 40;
    b.tagged = b.story.nodes.some(tag);
    b.stores = b.stage.story.stored = hasStore();
    b.stage.size();
    b.draw(performance.now());
    b.hits(); // the clients have other places
  }
  animate();
}

let moving = false, painted = 0;
function animate() {
  if (moving) return;
  moving = true;
  requestAnimationFrame(function tick(now) {
    if (now - painted > 35 || !painted) { // twenty-five pictures a second are enough, and leave time for news
      const passed = Math.min(100, now - painted) / 1000;
      painted = now;
      moving = false; // if a drawing fails, the next call of animate draws again
      leads(passed);
      moving = isDragging() ? plays(passed) : live().map((b) => b.draw(performance.now())).some(Boolean);
    }
    if (moving) requestAnimationFrame(tick);
    else if (!isDragging() && live().some((b) => b.ticks && b.root.checkVisibility())) setTimeout(animate, 150); // for the rings
  });
}

// ---- The time line: what has been recorded since the lesson began ----

// past is what was recorded, and at is the moment that is shown: null is now.
// last is the end of what was recorded.
const past = { stories: [], clock: null, last: 0, moments: [], at: null, focus: null, of: "", lesson: 0, asked: 0 };

// AFTER is how many milliseconds a strip goes on after a task, so that its result can be seen.
const AFTER = 2000;

// isWaiting reports whether time passes on the strips although nothing happens: a task waits, or a session runs out.
function isWaiting() {
  const waits = toDo() && (toDo().do === "" || isDoing());
  const isFresh = service.course.done > 0 && performance.now() < onPage(service.course.since) + AFTER;
  return waits || isFresh || live().some((b) => b.clients.some((c, i) => c.over < 0 && /^(stopped|crashed)/.test(b.state(i))));
}

// isOver reports whether all tasks of a lesson are done. What its clients do from then on belongs to no lesson.
const isOver = () => learns() && service.course.done === service.lessons[service.course.lesson - 1].tasks.length;

// happened returns a text that changes when more was recorded.
const happened = () => isOver() && !isWaiting() ? "over" + service.course.since : [isWaiting() ? Math.floor(performance.now() / RECALLS) : "", service.course.lesson, service.course.done, ...live().map((b) => [b.is.counters.requests + b.is.counters.notifications, b.is.store.log?.length, b.is.rows.map((r) => r.is + r.over)])].join("/");

// recall asks the service for what was recorded, unless the page has it.
async function recall() {
  const { course } = service, of = happened();
  if (past.of === of && past.clock) return;
  const answer = await fetch("/recorded?token=" + token);
  const stories = answer.ok && await answer.json();
  if (!stories || past.at !== null) return; // while a past moment is shown, nothing is added
  past.stories = stories;
  const isEven = !$("strips").hidden;
  for (const s of stories) isEven ? ready(s, WRITE_FLIGHT) : ready(s);
  const silent = past.stories.flatMap(({ clients, phases: [, second] }, i) => second && polls(i) ? clients.map(({ beats }) => second.at - (beats.findLast((t) => t <= second.at) ?? second.at)) : []);
  const before = Math.max(BEFORE * SECOND, ...silent); // a strip begins right before the first action; where a client is killed, with its last message
  for (const [i, s] of past.stories.entries()) {
    const [first, second] = s.phases, last = s.phases.at(-1);
    s.past = true;
    if (isEven && polls(i)) for (const p of s.phases) p.over = Math.min(p.over, lastChange(s, p) + AFTER * 1000);
    if (isWaiting() || isOver() && !polls(i)) last.over = s.end; // although nothing happens
    if (!isEven) continue;
    first.over = second?.at ?? s.end;
    first.at = Math.max(first.at, first.over - before);
    if (polls(i)) continue; // it goes on long enough
    for (const [k, p] of s.phases.entries()) p.over = Math.min(p.over + SECOND, s.phases[k + 1]?.at ?? s.end); // its result is seen
  }
  past.clock = clock(past.stories, isEven, SPAN / 1000);
  past.last = Math.max(...past.stories.map((s, i) => past.clock.shown(i, s.end)));
  past.moments = together(past.stories.flatMap((story, i) => {
    const frames = polls(i) ? unlikeBefore(story) : story.frames;
    const middle = ({ from, to }) => (from + to) / 2;
    // A client's state follows a message, which is drawn on its way for longer than it was.
    const after = ({ from, client }) => Math.max(from, ...frames.filter((f) => f.client === client && f.from <= from).map(middle)) + 1;
    const place = ({ frame, write, event }) => past.clock.shown(i, event ? after(event) : middle(frame ?? write));
    const all = [...frames.map((frame) => ({ frame })), ...story.writes.map((write) => ({ write })), ...(polls(i) ? changes(story) : []).map((event) => ({ event }))];
    return all.filter(({ frame, write, event }) => (frame ?? write ?? event).from >= story.phases[0].at).map((m) => ({ ...m, story, at: place(m) }));
  }).sort((a, b) => a.at - b.at));
  past.of = of;
  past.lesson = course.lesson;
}

// polls reports whether the waiters of a board poll.
const polls = (i) => /^[12]$/.test(live()[i].is.step);

// lastChange returns when a phase last showed something new, although clients poll all the time.
function lastChange({ clients, nodes }, { at, over }) {
  const all = [...clients.flatMap((c) => [c.over, ...c.states.map((s) => s.at)]), ...nodes.flatMap((n) => [n.from, n.to])];
  return Math.max(at, ...all.filter((t) => t <= over));
}

// together makes one moment of the notifications that are on their way at the same time.
function together(moments) {
  const merged = [];
  for (const m of moments) {
    const first = merged.findLast((o) => o.story === m.story && o.frame?.kind === NOTIFICATION);
    const isSame = m.frame?.kind === NOTIFICATION && first?.frame.op === m.frame.op && there(first.frame, m.frame.from);
    if (isSame) first.all.push(m.frame);
    else merged.push(m.frame ? { ...m, all: [m.frame] } : m);
  }
  return merged;
}

// unlikeBefore leaves out what a client that polls asks and hears once more, and each list after which it only polls on.
function unlikeBefore({ frames }) {
  const asked = [], heard = [];
  const pollsOn = (f) => f.op === 12 && frames.some((g) => g.client === f.client && g.kind === REQUEST && g.op === 12 && g.from >= f.to);
  return frames.flatMap((f) => {
    const { client, kind, op, err, names } = f, words = [kind, op, err, names].join();
    if (kind === REQUEST) asked[client] = f;
    if (kind === REQUEST || heard[client] === words) return [];
    heard[client] = words;
    if (pollsOn(f)) return [];
    return kind === REPLY && asked[client] ? [asked[client], f] : [f];
  });
}

// changes are the moments at which the state of a client changes, its session ends, or the lock's single znode is deleted.
function changes({ clients, nodes, znode }) {
  const deleted = znode ? nodes.filter((n) => n.to >= 0) : [];
  return [...deleted.map((n) => ({ from: n.to, says: () => say(`The znode of ${clientName(n.owner)} is deleted.`, `${clientName(n.owner)} 的 znode 被删除。`) })), ...clients.flatMap((c, i) => [
    ...c.states.map(({ at, is }) => ({ from: at, client: i, says: () => `${capital(clientName(i))}${say(": ", "：")}${stateName(is)}` })),
    ...(c.over > 0 ? [{ from: c.over, client: i, says: () => tell({ what: "expired", clients: [i] }) }] : []),
  ])];
}

// shows shows a recorded moment, or the present state if at is null.
function shows(at, focus = null) {
  Object.assign(past, { at: at === null || !past.clock ? null : Math.min(past.last, Math.max(0, at)), focus });
  live().forEach((b, i) => {
    const { step, stored, servers } = b.story;
    b.stage.story = past.at === null ? b.story : Object.assign(past.stories[i], { step, stored, servers });
  });
  timeline();
  drawStrips();
  resize();
  soon(); // the list of the znodes is of the same moment
}

// RECALLS is how many milliseconds the strips may be behind.
const RECALLS = 700;

// strips draws the time of a lesson below its boards.
let again = 0; // the timer after which it does so once more
function strips() {
  const canvases = $("strips").children;
  if (!isSet()) past.lesson = 0; // what was recorded belongs to the lesson before
  const isBlank = !isDragging() && past.lesson !== service.course.lesson;
  $("strips").classList.toggle("blank", isBlank);
  if (isBlank) for (const [i, canvas] of [...canvases].entries()) canvas.hidden = i >= live().length;
  if ($("strips").hidden || !isSet()) return;
  const now = performance.now(), rest = past.asked + RECALLS - now;
  const isOld = past.at === null && past.of !== happened();
  clearTimeout(again);
  if (isOld || isWaiting()) again = setTimeout(soon, rest > 0 ? rest : RECALLS);
  if (isOld && rest <= 0) {
    past.asked = now;
    recall().then(strips, () => {}); // the service has ended, and the page says so
  }
  drawStrips();
}

function drawStrips() {
  if (isDragging()) return drawPauses();
  if (past.lesson !== service.course.lesson || past.stories.length !== live().length) return;
  const { clock, stories, at, last } = past, ticks = clock.phases.slice(1).map((p) => p.at / clock.length);
  const now = last / clock.length; // the same on both boards
  [...$("strips").children].forEach((canvas, i) => {
    canvas.hidden = !stories[i];
    if (canvas.hidden || !canvas.checkVisibility()) return;
    const x = (t) => t >= stories[i].end ? now : clock.shown(i, t) / clock.length;
    Object.assign(stories[i], { stored: hasStore(), step: live()[i].is.step });
    const board = live()[i];
    const zero = stories[i].phases[1]?.at ?? stories[i].end; // before the first action, it is now
    const { phases } = stories[i], isCut = (p, k) => k > 0 && phases[k] && phases[k].at - phases[k - 1].at > (p.at - clock.phases[k - 1].at) * 1000 + SECOND / 2;
    const breaks = clock.phases.filter(isCut).map((p) => p.at / clock.length);
    board.strip = drawStrip(canvas, at === null ? board.drawn(stories[i]) : stories[i], x, at === null ? now : x(board.recorded()), ticks, zero, false, breaks);
    canvas.ariaLabel = stripSays(board.strip);
  });
}
const stripSays = ({ both, writes }) => say("Time. ", "时间。") + (both.length ? say("Two clients believe at the same time that they hold the lock. ", "两个客户端同时以为自己持有锁。") : "") + (writes.length ? say(`Writes: ${writes.join(", ")}.`, `写入：${writes.join("，")}。`) : "");
for (const canvas of $("strips").children) canvas.onpointerdown = canvas.onpointermove = (e) => {
  if (e.buttons !== 1) return;
  const share = shareAt(canvas, e);
  if (isDragging()) {
    const { min, max } = $("until"), seconds = Math.round(share * SPAN / SECOND) - BEFORE, chosen = Math.min(max, Math.max(min, seconds));
    return chosen === pause() ? undefined : drags(chosen);
  }
  looks(past.clock?.length * share);
};
for (const canvas of $("strips").children) canvas.onkeydown = (e) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
  if (!by) return;
  e.preventDefault();
  if (isDragging()) return drags(pause() + by);
  looks((past.at ?? past.last) + by * past.clock?.length / 40);
};
// looks moves the hairline of the strips. Right of what was recorded is now.
const looks = (at) => past.clock && shows(at < past.last ? at : null);

// ---- Lesson 5: the reader drags the end of a pause ----

// The strips show so much time, in microseconds, and so many seconds of it are before the first action.
const SECOND = 1e6, BEFORE = 1, SPAN = 12 * SECOND;
const stopped = (story) => story.clients[0].states.find((s) => s.is.startsWith("stopped")).at;

// pause returns how many seconds the pause is that the reader has chosen.
const pause = () => Number($("until").value);

// isDragging reports whether the reader chooses a pause: until it is done for real, or something else is done.
function isDragging() {
  const { course, lessons } = service;
  return Boolean(isSet() && lessons[course.lesson - 1]?.drags) && course.done === 0 && !isDoing() && !strayed();
}

function drags(seconds) {
  $("until").value = seconds;
  paused = pause(); // once the reader has guessed, what follows is played
  soon();
}
$("until").oninput = () => drags(pause());
for (const e of [$("until"), ...$("strips").children]) e.addEventListener(e.id ? "change" : "pointerup", showsQuestion);

// showsQuestion scrolls to the guess once the pause is so long that it is asked for: on a phone it is below the screen.
function showsQuestion() {
  if (!narrow.matches || !isDragging() || hasGuessed() || !isLate(pause())) return;
  render();
  document.querySelector("#lesson .guesses").scrollIntoView({ block: "end" });
}

// recordedPause returns the recorded runs of a pause, the chosen one if nothing else is said: one for each board.
const recordedPause = (seconds = pause()) => live().map((b) => service.pauses.stories.find((s) => s.id === `pause${seconds}` && s.step === b.is.step));

// paused is how many seconds of the recorded pause are drawn: up to its end and, once the reader has guessed, what follows.
// guessedAt is the pause for which he has guessed.
let paused = 0, guessedAt = 0;
const seenPauses = new Set(); // the pauses whose answers have been shown
const TAIL = 1.1; // seconds of a recorded run after its pause

// plays lets time pass in the recorded pause: quickly until its end, and then as it was.
function plays(seconds) {
  const end = pause() + (hasGuessed() ? TAIL : 0), before = paused;
  paused = still.matches ? end : Math.min(end, paused + seconds * (paused < pause() ? 3 : 1));
  if (paused > before && paused === end) { // what is said of it comes now
    if (hasGuessed()) seenPauses.add(pause());
    soon();
  }
  drawPauses();
  return paused < end;
}

// upTo returns a recorded run without what a client, or its znode, did after the moment end(client).
function upTo(story, end) {
  const clients = story.clients.map((c, i) => ({ ...c, states: c.states.filter((s) => s.at <= end(i)) }));
  const nodes = story.nodes.filter((n) => n.from <= end(n.owner)).map((n) => ({ ...n, to: n.to <= end(n.owner) ? n.to : -1 }));
  const begun = (x) => x.from <= end(x.client);
  return { ...story, clients, nodes, frames: story.frames.filter(begun), writes: story.writes.filter(begun) };
}

// drawPauses draws the recorded runs of the chosen pause, on the boards and below them.
function drawPauses() {
  set($("seconds"), say(`${pause()} s`, `${pause()} 秒`));
  $("until").setAttribute("aria-valuetext", $("seconds").textContent);
  recordedPause().forEach((story, i) => {
    const b = live()[i], canvas = $("strips").children[i], from = stopped(story), x = (t) => (t - from + BEFORE * SECOND) / SPAN;
    b.paused = Math.min(story.end, from + paused * SECOND);
    b.stage.story = Object.assign(story, { past: true, stored: true, servers: service.servers });
    Object.assign(story.clients[0], { pending: b.paused > from && paused <= pause(), token: story.writes.at(-1).token });
    b.draw(performance.now());
    canvas.hidden = false;
    if (!canvas.checkVisibility()) return;
    const ticks = Array.from({ length: SPAN / SECOND }, (_, k) => k * SECOND / SPAN);
    const shown = { ...upTo(story, () => b.paused), frames: [], writes: story.writes.filter((w) => w.to <= b.paused), end: b.paused };
    b.strip = drawStrip(canvas, shown, x, x(from + pause() * SECOND), ticks, from, true);
    canvas.ariaLabel = stripSays(b.strip);
  });
}

// hasAnswer reports whether the reader has guessed, and has seen what follows the pause.
const hasAnswer = () => hasGuessed() && paused >= pause() + TAIL;

// pauseSays says below a board what its drawing shows.
Board.prototype.pauseSays = function () {
  const [before, during, after] = recordedPause()[live().indexOf(this)].phases, { sum } = hasAnswer() ? after : paused >= pause() ? during : before;
  const isLost = sum === after.sum && this.stage.kept().value?.late; // as the store in the drawing
  const { stage: { story: { clients: [holder], nodes } } } = this;
  const hasGivenUp = stateAt(holder, this.paused).startsWith("told") && nodes.some((n) => n.owner === 0 && there(n, this.paused));
  return [make("p", { className: isLost ? "" : "note" },
    make("span", { className: "whose" }, say(`Step ${this.is.step}: `, `第 ${this.is.step} 步：`)),
    ...(isLost ? [make("strong", {}, say("Client 1's value is lost. ", "客户端 1 写入的值丢失了。"))] : []),
    say(sum), ...(hasGivenUp ? [" ", say("By its own clock, client 0 no longer relies on the lock.", "客户端 0 按自己的时钟判断，已经不再依赖这把锁。")] : []))];
};

// outcome reports whether the store has accepted the write after the recorded pause of so many seconds.
const outcome = (i, seconds) => recordedPause(seconds)[i].writes.at(-1).ok;

// isRightFor reports whether the guess was right for the pause for which it was made.
const isRightFor = (i) => guesses.get(guessKey(i, lessonGuesses()[0])) === String(Number(outcome(i, guessedAt)));

// answers says beside the guess whether it was right, and what was recorded of the pause that is drawn.
const answers = (i) => [make("span", {}, mark(isRightFor(i)), guessedAt === pause() ? "" : say(` for ${guessedAt} s;`, `（停 ${guessedAt} 秒）`)),
  say(` recorded for ${pause()} s: ${guessed("write", outcome(i, pause()))}`, ` 停 ${pause()} 秒录得：${guessed("write", outcome(i, pause()))}`)];

// isLate reports whether the write comes too late after a pause of so many seconds.
const isLate = (seconds) => recordedPause(seconds).every(({ writes }) => writes.at(-1).late);

// change asks in which step an answer changes: in step 5 alone. It says so, and where, once the answers right before and after it have been shown.
function change() {
  let last = Number($("until").min); // the longest pause that is in time
  while (!isLate(last + 1)) last++;
  const isFound = seenPauses.has(last) && seenPauses.has(last + 1);
  return make("p", { className: "change" }, isFound ? say(`✓ In step 5, between ${last} and ${last + 1} s: there the session ends. Step 4 accepts every write.`, `✓ 第 5 步的答案在 ${last} 秒和 ${last + 1} 秒之间改变：会话在那时结束。第 4 步总是接受。`)
    : say("Drag on: in which step does the answer change?", "继续拖动：哪一步的答案会变？"));
}

// goes shows the next recorded frame, or the one before.
async function goes(by) {
  if (past.at === null) await recall(); // once a past moment is shown, later frames are not added
  const { moments, focus, clock } = past, at = past.at ?? clock?.length;
  if (!moments.length) return;
  let i = focus ? moments.findIndex((m) => (m.all?.includes(focus.frame) ?? !focus.frame) && m.write === focus.write && m.event === focus.event) + by : by > 0 ? moments.findIndex((m) => m.at > at) : moments.findLastIndex((m) => m.at < at);
  if (i < 0 && by > 0 || i >= moments.length) return shows(null);
  i = Math.max(0, i);
  shows(moments[i].at, moments[i]);
}

// LEAD is how many microseconds of the record are played before the decisive moment.
const LEAD = 1.5 * SECOND;

// decides plays what led to the decisive moment of a task that is done, if it was recorded, and stops there: when most of
// the decisive messages are on their way. That is the same moment on both boards, unless one of them has no such message then.
async function decides(what) {
  await recall();
  const isIt = { notified: (f) => f.kind === NOTIFICATION, lost: (f) => f.lost, found: (f) => f.kind === REPLY && f.op === 12 && f.client === 1, wrote: (w) => w.client === 0 }[what];
  const found = past.stories.map((story) => {
    const all = (what === "wrote" ? story.writes : story.frames).filter((f) => f.from >= story.phases.at(-1).at && isIt(f));
    const times = all.map((f) => f.from + (f.to - f.from) * (f.lost || what === "found" ? 0.9 : 0.7)), many = (t) => all.filter((f) => there(f, t)).length;
    const best = [...times].sort((t, u) => many(u) - many(t))[0];
    return { story, all, best, [what === "wrote" ? "write" : "frame"]: all[times.indexOf(best)] };
  });
  const sides = found.filter((f) => f.all.length).sort((f, g) => g.all.length - f.all.length); // first where more happens
  if (!sides.length) return;
  const moments = sides.map(({ story, best }) => past.clock.shown(past.stories.indexOf(story), best));
  const isCommon = (at) => sides.every(({ story, all }) => all.some((f) => there(f, past.clock.recorded(past.stories.indexOf(story), at))));
  const common = moments.find(isCommon), rest = still.matches ? 0 : LEAD;
  const best = found.map((f, i) => common === undefined ? f.best : past.clock.recorded(i, common));
  shows(common ?? moments[0], { ...sides[0], best, rest, decides: !rest });
  past.of = "";
}

// leads lets time pass until the decisive moment.
function leads(seconds) {
  const { focus } = past;
  if (!focus?.rest) return;
  focus.rest = Math.max(0, focus.rest - seconds * SECOND);
  focus.decides = !focus.rest;
  soon();
}

// timeline shows which moment is drawn.
function timeline() {
  const isPast = past.at !== null, slider = $("moment");
  $("time").classList.toggle("past", isPast);
  slider.max = Math.round(past.last || 1000);
  fill($("actions"), (past.clock?.phases ?? []).slice(1).map(({ at }) => make("option", { value: String(Math.round(at)) }))); // a tick each
  slider.value = isPast ? past.at : slider.max;
  $("now").hidden = !isPast;
  for (const b of live()) {
    const band = b.root.querySelector(".again");
    band.hidden = !isPast;
    if (!isPast) continue;
    const { phases } = past.stories[live().indexOf(b)], zero = (phases[1] ?? phases[0]).at; // as on the strip
    const seconds = ((b.recorded() - zero) / SECOND).toFixed(1);
    set(band.querySelector("span"), past.focus?.decides
      ? say(`At ${seconds} s: the decisive moment.`, `第 ${seconds} 秒：起决定作用的时刻。`)
      : say(`At ${seconds} s: an earlier moment.`, `第 ${seconds} 秒：之前的某个时刻。`));
  }
  const phase = isPast && past.stories[0].phases[past.clock.phaseAt(past.at)];
  const { focus } = past, place = focus && past.stories.indexOf(focus.story);
  const pair = live().length > 1 ? say(place ? "right: " : "left: ", place ? "右边：" : "左边：") : "";
  const words = !isPast ? say("now", "现在") : focus?.all?.length > 1 && focus.frame?.kind === NOTIFICATION ? pair + say(`The server notifies ${focus.all.length} clients.`, `服务器通知 ${focus.all.length} 个客户端。`)
    : focus?.write ? pair + capital(writeLine(focus.write)) : focus?.event ? pair + focus.event.says() : focus ? pair + sentence(focus.story, focus.frame) : say(`after “${phaseTitle(phase)}”`, `“${phaseTitle(phase)}”之后`);
  set($("when"), words);
  for (const e of [slider, ...$("strips").children]) Object.assign(e, { ariaValueText: words, ariaValueMax: slider.max, ariaValueNow: slider.value });
}

$("moment").oninput = async (e) => { const { value, max } = e.target, share = value / max; if (past.at === null) await recall(); past.clock && shows(share * past.last); };
$("earlier").onclick = () => goes(-1);
$("later").onclick = () => goes(1);
for (const b of [$("now"), ...document.querySelectorAll(".again button")]) b.onclick = () => shows(null);

const events = new EventSource("/events?token=" + token);
events.onmessage = (e) => take(JSON.parse(e.data));
events.onopen = () => complain("");
events.onerror = () => complain(say(GONE), Infinity);

// complain shows an error for a while.
let calm;
function complain(text, length = COMPLAINT) {
  clearTimeout(calm);
  $("trouble").hidden = !text;
  set($("trouble"), text);
  if (text && length < Infinity) calm = setTimeout(() => complain(""), length);
}

// ---- What the page asks ----

async function ask(command) {
  try {
    const answer = await fetch("/do", { method: "POST", headers: { "Zklock-Token": token, "Content-Type": "application/json" }, body: JSON.stringify(command) });
    if (!answer.ok) complain(await answer.json());
    return answer.ok;
  } catch {
    complain(say(GONE), Infinity);
    return false;
  }
}

function button(data, text) {
  const b = make("button", { type: "button", textContent: text });
  Object.assign(b.dataset, data);
  return b;
}

// link makes a button that looks like a link.
const link = (data, text) => Object.assign(button(data, text), { className: "link" });

// press does what a button is for.
function press(b) {
  const { do: what, n, task, pace, fault, client, choose, board } = b.dataset;
  if (choose === undefined && what !== "lessons") aim = null; // from here the reader goes on, and catchUp ends
  if (choose === undefined && past.at !== null) shows(null);
  if (what === "way") return chooseWay(b.dataset.way);
  if (b.closest("#lesson li.now")) scrollTo(0, 0); // where the page scrolls, the strips are seen again
  if (what === "moment") return decides(b.dataset.moment);
  if (what === "instead") {
    isInstead = !isInstead;
    render();
    return [...document.querySelectorAll("#finale input, #herd-figure [data-column], #lesson [data-do=instead]")].find((e) => e.checkVisibility())?.focus({ preventScroll: true });
  }
  if (what === "lessons") return start(!choosing || !live().length);
  if (what === "lesson") awaited = Number(n);
  if (what === "lesson" || what === "freely") {
    start(false);
    freely = what === "freely";
    render();
  }
  if (what === "lesson" && task) aim = { n: Number(n), tasks: Number(task), isLaid: false };
  if (what === "lesson") return ask({ do: what, n: Number(n) });
  if (what === "freely" && live().length) ask({ do: "pace", pace: "real" });
  if (what === "freely") return live().length || ask({ do: "choose", board: 0, lock: "3" });
  if (choose !== undefined) {
    const box = b.getBoundingClientRect();
    select(Number(choose));
    return learns() || b.closest(".hits") ? menu(Number(choose), box.right, box.bottom) : undefined;
  }
  if (what === "pace") return ask({ do: what, pace });
  if (what === "server") return ask({ do: what, n: Number(n), fault });
  if (what === "add") return ask({ do: what, n: Number(n) });
  if (what === "clear") return ask({ do: what });
  if (what === "pause") return ask({ do: what, client: Number(client), n: pause() });
  ask({ do: what, client: client === undefined ? chosen : Number(client), ...(board === undefined ? {} : { board: Number(board) }) });
}

// start shows the choice of a lesson, or leaves it.
function start(is) {
  if (is === choosing) return;
  choosing = is;
  if (is && located) {
    located = "#lessons";
    address(located, location.hash !== located);
  }
  soon();
}

function select(i) {
  chosen = Math.max(0, Math.min(i, crowd().length - 1));
  list();
  document.activeElement.closest(".hits")?.querySelector(`[data-choose="${chosen}"]`)?.focus();
  const box = $("clients").querySelector(".scroll"), row = box.querySelector(".chosen");
  if (!row) return;
  const above = row.offsetTop - box.scrollTop, below = above + row.offsetHeight - box.clientHeight;
  if (above < 0 || below > 0) box.scrollTop += above < 0 ? above : below; // nothing else scrolls
}

document.addEventListener("click", (e) => {
  const b = e.target.closest("button[data-do], button[data-choose]");
  const second = e.detail > 1 && b?.classList.contains("quick"); // of a double click: the button has changed
  if (b && !second) press(b);
});
[0, 1].forEach((i) => { $("lock" + i).onchange = (e) => start(false) ?? ask({ do: "choose", board: i, lock: e.target.value }); });
// menu shows, beside a client, what the reader can do to it now. With two boards, that is done on both.
function menu(i, x, y) {
  const can = new Set(live().flatMap((b) => b.is.rows[i]?.can ?? []));
  const asksWho = learns() && asked()?.kind === "next";
  const buttons = [...document.querySelectorAll("#commands [data-do]")].filter((b) => can.has(b.dataset.do)).map((b) => button({ do: b.dataset.do, client: String(i) }, say(COMMANDS[b.dataset.do])));
  const who = make("b", {}, capital(clientName(i)));
  const next = asksWho && live().map((b) => make("button", { type: "button", onclick: () => { notes(b.i, String(i)); guessIs(b.i, i); $("menu").hidePopover(); } },
    live().length > 1 ? say(`My guess, step ${b.is.step}`, `我猜是它，第 ${b.is.step} 步`) : say("My guess", "我猜是它")));
  $("menu").replaceChildren(who, ...(next || []), ...buttons);
  $("menu").showPopover();
  const { width, height } = $("menu").getBoundingClientRect();
  $("menu").style.left = Math.max(4, Math.min(innerWidth - width - 4, x - width / 2)) + "px";
  $("menu").style.top = Math.max(4, Math.min(innerHeight - height - 4, y + 6)) + "px";
  $("menu").querySelector("button")?.focus();
}
$("menu").addEventListener("click", (e) => e.target.closest("button") && $("menu").hidePopover());

// guessIs writes a guess that was made in a client's menu into the field of the lesson.
function guessIs(board, i) {
  const field = document.querySelector(`#lesson [data-guess="${board}"]`);
  if (field) field.value = String(i);
}

// ---- Words that can be pressed ----

const WORDS = [
  [/ZooKeeper/, text("ZooKeeper: a service that keeps a small tree of data for many clients, and notifies them of changes. In production, three or five servers each keep a copy; here there is one server, or three with SERVERS=3.", "ZooKeeper 是一种服务：它为许多客户端保管一棵小小的数据树，数据变化时通知它们。在生产环境里，由三台或五台服务器各保管一份；这里只有一台服务器，用 SERVERS=3 则有三台。")],
  [/sessions?\b|会话/, text("Session: what a server knows of a client. An idle client sends pings to keep it alive. When the servers have heard nothing from the client for the timeout, here 5 s, they end the session.", "会话：服务器对一个客户端的记录。客户端空闲时发送心跳，维持会话。如果服务器在整个超时（这里是 5 秒）里没有收到客户端的消息，就结束会话。")],
  [/ephemeral|临时的/, text("Ephemeral: such a znode is deleted by the servers when the session that created it ends. Others stay until somebody deletes them.", "临时的：创建这种 znode 的会话结束时，服务器就删除它。其他的 znode 一直留到有人删除为止。")],
  [/znodes?\b/, text("Znode: a small file in the tree that ZooKeeper keeps. Here a lock is one znode, or a directory in which each client creates one.", "znode：ZooKeeper 保管的那棵树里的一个小文件。在这里，锁或者是一个 znode，或者是一个目录，每个客户端在目录里创建一个 znode。")],
  [/notified|notifications?\b|收到通知/, text("Notification: a client that has set a watch gets one message, once, when what it watches has changed.", "通知：客户端设置监听器以后，监听的内容一旦变化，它就会收到一条消息，而且只收到一次。")],
  [/watch(?:es)?\b|监听/, text("Watch: a client asks a server to notify it, once, when a znode or a directory changes.", "监听器：客户端请服务器在某个 znode 或目录变化时通知它，只通知一次。")],
  [/wire\b|网络/, text("The wire: the connection between a client and a server. Here it can be slowed down, held, and cut.", "网络：客户端与服务器之间的连接。在这里，可以把它放慢、停住或切断。")],
  [/token|令牌/, text("Token: a number that grows from one holder to the next; two readers may have the same one.", "令牌：一个数，越晚的持有者得到的越大；两个读者的令牌可以相同。")],
  [/polls?\b|轮询/, text("To poll: to ask repeatedly, in place of waiting for a notification.", "轮询：反复发请求查询，而不是等通知。")],
  [/directory|目录/, text("Directory: a znode that has children. Here it is the lock's directory, in which each client creates its znode.", "目录：有子节点的 znode。这里指锁的目录，每个客户端都在里面创建自己的 znode。")],
  [/persistent|持久的/, text("Persistent: such a znode stays until a client deletes it. An ephemeral one is deleted when its session ends.", "持久的：这种 znode 一直留到有客户端删除它。临时的 znode 则在会话结束时被删除。")],
  [/readers?\b|读者/, text("Reader: a client that only reads the data. A writer is one that changes it.", "读者：只读数据的客户端。要修改数据的客户端叫做写者。")],
  [/\bgetChildren\b/, text("getChildren: the request that lists the children of a znode.", "getChildren：列出一个 znode 的子节点的请求。")],
  [/\bcreate\b/, text("create: the request that makes a znode. It fails if there is one of that name.", "create：创建 znode 的请求。同名的 znode 已经存在时，它会失败。")],
];

// gloss writes a text in which each technical term is a button, where it appears first.
function gloss(e, words) {
  if (e.glossed === words) return e;
  e.glossed = words;
  let parts = [words];
  for (const [i, [word]] of WORDS.entries()) {
    const at = parts.findIndex((p) => typeof p === "string" && word.test(p));
    if (at < 0) continue;
    const p = parts[at], { index, 0: found } = p.match(word);
    const b = make("button", { type: "button", className: "word" }, found);
    b.dataset.word = i;
    parts.splice(at, 1, p.slice(0, index), b, p.slice(index + found.length));
  }
  e.replaceChildren(...parts);
  return e;
}
document.addEventListener("click", (e) => {
  const b = e.target.closest(".word");
  if (!b) return;
  const box = b.getBoundingClientRect(), note = $("gloss");
  note.textContent = say(WORDS[b.dataset.word][1]);
  note.showPopover();
  note.style.left = Math.max(6, Math.min(innerWidth - note.offsetWidth - 6, box.x)) + "px";
  note.style.top = Math.min(innerHeight - note.offsetHeight - 6, box.bottom + 4) + "px";
});

// ---- The ends of lessons 3 and 6: a thousand clients wait, and all six steps ----

// isInstead reports whether something is shown in place of the boards: the thousand, or the six steps. figure draws the
// thousand.
let isInstead = false, figure = null, added = null;

// instead shows, at the end of lesson n, what comes in place of the boards; 0: no such lesson is over.
function instead(n) {
  isInstead &&= n > 0;
  const wasInstead = document.body.classList.contains("herding"), isHerd = isInstead && n === 3;
  document.body.classList.toggle("herding", isInstead);
  $("herd").hidden = !isHerd;
  $("finale").hidden = !isInstead || n !== 6;
  if (!$("finale").hidden) sums();
  if (isInstead !== wasInstead) resize();
  if (isHerd) figure ??= showHerd($("herd-figure"), service.crowds, soon, () => !narrow.matches);
  const { busy, last } = service.swept;
  $("swept").disabled = busy > 0;
  set($("swept"), busy ? say(`Measuring with ${busy} …`, `正在用 ${busy} 个测量 ……`) : say("Measure", "测量"));
  if (!last || !isHerd || added === JSON.stringify(last)) return;
  added = JSON.stringify(last);
  figure.add(last);
}

// herdTask is what there is to do at the end of lesson 3.
function herdTask() {
  const b = button({ do: "instead" }, isInstead ? say("Back to the eleven", "回到这十一个客户端") : say("A thousand wait ▸", "一千个在等 ▸"));
  return make("li", { className: "now" }, say("And if a thousand clients wait? ", "如果有一千个客户端在等呢？"), Object.assign(b, { className: isInstead || figure?.isSeen() ? "" : "next" }));
}

// The end of lesson 6: the service measures the six steps.
function finaleTask() {
  const b = button({ do: "instead" }, isInstead ? say("Back to the six clients", "回到这六个客户端") : say("Compare all six ▸", "六步并排比较 ▸"));
  return make("li", { className: "now" }, say("And all six steps, side by side? ", "六步放在一起比，怎么样？"), Object.assign(b, { className: isInstead || hasFinale() ? "" : "next" }));
}
const STEPS = service.locks.filter(({ key }) => /^[1-6]$/.test(key));
const hasFinale = () => service.finale.rows?.length === STEPS.length;

// COLUMNS are those of the table: whether a step is as it should be, and what was measured of it. In the first MARKED of
// them the reader has marked, as his guess, the first step that is.
const NEXT = text("the next one", "下一个"), NOBODY = text("nobody", "谁也拿不到"), MARKED = 3, marked = [];
const COLUMNS = [
  [(m) => m.isFree, (m) => [m.isFree ? NEXT : NOBODY]],
  [(m) => !m.waiting, ({ waiting, writes }) => [counted(waiting, "request", "个请求"), ...(waiting ? [writes ? text("all writes", "全是写操作") : text("all reads", "全是读操作")] : [])]],
  [(m) => m.notified === 1, ({ polls, notified, requests }) => polls ? [text("none", "没有通知"), text("they poll", "它们在轮询")] : [text(`${notified} notified`, `通知 ${notified} 个`), counted(requests, "request", "个请求")]],
  [(m) => m.isFound, (m) => [m.isFound ? NEXT : NOBODY]],
  [(m) => m.shares, (m) => [m.shares ? text("both", "同时持有") : text("one waits", "一个要等")]],
];
const counted = (n, one, zh) => text(`${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`, `${n.toLocaleString("en")} ${zh}`);

// sums writes what was measured of each step, or asks for the guesses.
function sums() {
  const { busy, rows } = service.finale, asks = !busy && !rows?.length, hasMarked = Object.keys(marked).length === MARKED;
  fill($("finale").querySelector("tbody"), STEPS.map((l, i) => {
    const [step, name] = say(l.name).split(/[:：] */), m = rows?.[i];
    const cells = COLUMNS.map(([isFine, says], k) => {
      const isMine = marked[k] === i, first = rows?.findIndex(isFine);
      if (asks && k < MARKED) {
        const radio = make("input", { type: "radio", name: "mark" + k, value: i, checked: isMine, ariaLabel: step });
        radio.dataset.mark = k;
        return make("td", {}, make("label", {}, radio));
      }
      const mine = isMine ? [make("small", { className: "mine" }, ...(m ? [mark(first === i)] : []), say(" your guess", " 你猜的"))] : [];
      if (!m) return make("td", {}, busy && i === rows.length && k === 0 ? say("measuring …", "正在测量 ……") : "–", ...mine);
      const [what, more] = says(m);
      return make("td", { className: isFine(m) ? "good" : "bad" }, say(what), ...(more ? [" ", make("small", {}, say(more))] : []), ...mine);
    });
    return make("tr", { className: m ? "" : "unmeasured" }, make("th", { scope: "row" }, make("b", {}, step), " ", make("small", {}, name)), ...cells);
  }));
  $("marks").hidden = $("unsure").hidden = !asks;
  $("stair").hidden = !hasFinale();
  $("sums").disabled = busy || asks && !hasMarked;
  $("sums").classList.toggle("next", asks && hasMarked);
  set($("sums"), busy ? say("Measuring …", "正在测量 ……") : asks ? say("Measure", "测量") : say("Measure again", "再测一次"));
}
document.addEventListener("input", ({ target: { dataset, value } }) => {
  if (dataset.mark === undefined) return;
  marked[dataset.mark] = Number(value);
  soon();
});
$("waiters").oninput = () => set($("many"), $("waiters").value);
$("swept").onclick = async () => {
  const n = Number($("waiters").value);
  service.swept = { ...service.swept, busy: n }; // shown at once, because the news may be late
  soon();
  if (await ask({ do: "sweep", n })) return;
  service.swept = { ...service.swept, busy: 0 };
  soon();
};

// ---- Keys ----

const isSeen = (id) => $(id).checkVisibility(); // a key works only while its button is visible
const moves = {
  ArrowDown: () => select(chosen + 1), ArrowUp: () => select(chosen - 1), PageDown: () => select(chosen + 10), PageUp: () => select(chosen - 10),
  h: () => { const c = crowd(), next = [...c.keys()].map((i) => (chosen + 1 + i) % c.length).find((i) => live().some((b) => inside(b.state(i)))); if (next !== undefined) select(next); },
  " ": () => isSeen("held") && ask({ do: "pace", pace: service.pace === "pause" ? "onward" : "pause" }),
  "?": () => { if (isSeen("help")) { keys(); $("keys").showModal(); } },
  S: () => isSeen("save") && $("save").click(),
  f: () => { if (!isSeen("wide")) return; $("wide").setAttribute("aria-pressed", document.body.classList.toggle("wide")); resize(); },
};
for (const b of document.querySelectorAll("[data-key]")) {
  moves[b.dataset.key] = () => b.checkVisibility() && !b.disabled && press(b);
  b.setAttribute("aria-keyshortcuts", b.dataset.key === "+" ? "Plus" : b.dataset.key.replace(/^([A-Z])$/, "Shift+$1"));
  b.append(" ", make("kbd", { ariaHidden: "true" }, b.dataset.key));
}
// keys lists the keys, each with the text of its button.
function keys() {
  $("keys").querySelector("dl").replaceChildren(...[...document.querySelectorAll("[data-key]")].map((b) =>
    make("div", {}, make("dt", {}, make("kbd", {}, b.dataset.key)), make("dd", {}, b.firstChild.textContent))));
}

document.addEventListener("keydown", (e) => {
  const busy = e.target.matches("select, input") || [" ", "Enter"].includes(e.key) && e.target.matches("button, a, summary");
  const covered = document.body.classList.contains("choosing"); // the reader would not see what a key does
  if (covered || busy || e.altKey || e.ctrlKey || e.metaKey || !moves[e.key] || $("keys").open) return;
  e.preventDefault();
  moves[e.key]();
});

for (const d of document.querySelectorAll("details")) d.ontoggle = render;
$("help").onclick = moves["?"];
$("wide").onclick = moves.f;
addEventListener("resize", () => { render(); resize(); });
addEventListener("language", () => {
  for (const b of live()) b.stage.write();
  render();
  resize();
});
const size = new ResizeObserver(resize);
for (const b of boards) size.observe(b.stage.canvas);
chooseLanguage($("language"));
