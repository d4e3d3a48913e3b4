// The reader plays the network: he chooses what happens next. All that can happen is in the games.

const at = (id) => document.getElementById(id);
const data = JSON.parse(at("data").textContent);
const games = Object.fromEntries(Object.entries(data.games).map(([key, game]) => [key, new Game(game)]));
const isStill = matchMedia("(prefers-reduced-motion: reduce)");
const CODES = { pass: "p", unlock: "u", "lose-request": "r", "lose-reply": "l", crash: "c", expire: "x", "give-up": "g" };
const COLOURS = ["var(--request)", "var(--six)", "var(--notification)", "var(--soft)"];
const nameOf = (client) => "ABCD"[client];

let level, game;
let path = [], played = 0; // the choices, and how many of them are on the board
let menu = ""; // the sign that is pressed, and shows what can go wrong there: client-0, say, or turn-0
let isBusy = false, hasGivenUp = false;
let shown = null; // { from, count }: the path is so many choices from a link, say; null: it is the reader's own
let halts = 0; // counted, so that what was under way before one does not go on
let hasPulsed = false; // the first chip has said once that it can be pressed
const HASTE = 500; // milliseconds: a key that is pressed so soon after the end was meant for the board
let endedAt = -HASTE; // when the last choice was made
let late = -1; // the halts for which the second board is still under way

const mine = () => path.slice(0, played);
const here = () => mine().at(-1)?.to ?? 0;
const coinsLeft = () => level.coins - mine().filter(isFault).length;
const moves = () => game.moves(here());

// ---- Words ----

function number(name) {
  const digits = name.match(/(\d+)$/)?.[1];
  if (digits) return String(Number(digits));
  return name === "null" ? say("(no name)", "（没有名字）") : name;
}
function request({ op, on, sets }) {
  switch (op) {
    case "create": return say("create znode", "创建节点");
    case "getChildren": return sets ? say("list, and watch", "列出并监听") : say("list the queue", "列出队列");
    case "getData": case "exists": return (sets ? say("watch ", "监听 ") : say("look at ", "查看 ")) + number(on);
    case "delete": return say("delete ", "删除 ") + number(on);
    case "sync": return say("sync the server", "让服务器同步");
  }
  return op;
}
const deeds = () => ({
  pass: say("it reaches the server", "到达服务器"), unlock: say("calls Unlock", "调用 Unlock"),
  "lose-request": say("request lost", "请求丢失"), "lose-reply": say("reply lost", "响应丢失"),
  crash: say("crashes", "崩溃"), expire: say("cut off: session ends", "失联：会话结束"), "give-up": say("gives up", "放弃等待"),
});

// outcome says what a choice would do.
const outcome = (m) => ({
  pass: say("deliver", "送达"), unlock: say("call Unlock", "调用 Unlock"),
  "lose-request": say("lose request", "丢掉请求"), "lose-reply": say("lose reply", "丢掉响应"),
})[m.deed] ?? deeds()[m.deed];

// ended says how all calls of a client have ended. It got an error if it never held the lock, or lost it.
function ended(path, client) {
  const states = path.flatMap((m) => m.came).filter(([who, kind]) => who === client && kind === "state").map(([, , state]) => state);
  const isDone = states.some((state) => state === "holds" || state === "reads") && !states.some((state) => state.startsWith("told"));
  return isDone ? say("is done", "完成了") : say("got an error", "得到错误");
}
// isCut reports whether the session of a client ended, and the server has not answered the client since.
function isCut(s, client, path) {
  const ends = path.findIndex((m) => m.deed === "expire" && m.client === client);
  return s.expired && s.state !== "crashed" && !path.slice(ends + 1).some((m) => m.came.some(([who, kind, , , , , isLost]) => who === client && kind === "reply" && !isLost));
}
const isTold = (s) => s.state.startsWith("told");
const connectionLost = () => say("connection lost", "连接断开");
// stateOf says what is drawn over a client. A client that holds the lock, but not by its znode, only believes it.
function stateOf(g, point, client, path) {
  const s = g.stand(point, client), isRight = !s.expired && g.isServed(point, client);
  if (s.state === "crashed") return [say("crashed", "已崩溃"), "bad"];
  if (s.state === "holds" || s.state === "reads") return [isRight ? say("HOLDS the lock", "持有锁") : say("believes it holds", "以为自己持有锁"), !isRight || isTooMany(g, point) ? "bad" : "holder"];
  if (s.state === "waits" && isStuck(g, point) && !s.gaveUp) return [say("waits forever", "永远等下去"), "bad"];
  if (s.state === "waits" && s.gaveUp) return [say("has given up", "已放弃"), "soft"];
  if (s.state === "waits" && s.op === "delete") return [say("got an error, cleans up", "出错了，正在清理"), "soft"];
  if (s.state === "waits") return s.op ? [say("wants the lock", "想要锁"), "soft"] : [say("waits", "等待"), "soft"];
  if (s.state === "releases") return [say("releases", "释放中"), "soft"];
  if (isTold(s) && isCut(s, client, path)) return [say("stopped: no connection", "连接断开，已停手"), "soft"];
  if (isTold(s)) return [say("knows that it lost it", "知道丢了锁"), "soft"];
  if (s.state === "got an error") return [say("got an error", "得到错误"), "soft"];
  return [ended(path, client), "soft"];
}
const kindOf = (kind) => say(data.kinds[kind]);
const count = (n, one, many, zh) => say(n === 1 ? one : `${n} ${many}`, `${n} ${zh}`);
const choicesIn = (n) => count(n, "1 choice", "choices", "次选择");

// described says what has followed from a choice.
function described(m) {
  const said = [];
  if (m.deed === "expire") said.push(say(`${nameOf(m.client)} is cut off: its session ends`, `${nameOf(m.client)} 失联：它的会话结束`));
  else if (m.deed !== "pass") said.push(`${nameOf(m.client)}${say(": ", "：")}${m.deed.startsWith("lose") ? request(m) + say(": ", "：") : ""}${deeds()[m.deed]}`);
  const next = game.stand(m.to, m.client);
  if (m.deed.startsWith("lose") && next.op === m.op && next.on === m.on) said.push(say(`${nameOf(m.client)} asks again`, `${nameOf(m.client)} 再问一次`));
  const deleted = isFault(m) ? endsWith(m) : [];
  if (deleted.length) said.push(say(`The server deletes ${deleted.join(" ")}`, `服务器删除 ${deleted.join(" ")}`));
  const whose = nameOf(m.client);
  if (m.deed === "expire" && isUnaware(m)) said.push(say(`${whose} goes on`, `${whose} 照常运行`));
  if (knowsNoName(m)) said.push(say(`${nameOf(m.client)}'s list failed; ${nameOf(m.client)} does not know which znode is before its own`, `${nameOf(m.client)} 没能列出队列，不知道自己前面是哪个节点`));
  for (const [client, kind, op, on, err, names, isLost] of m.came) {
    const who = nameOf(client), n = on && number(on);
    if (kind === "state") {
      const s = { holds: game.isServed(m.to, client) ? say(`${who} holds the lock`, `${who} 持有锁`) : say(`${who} believes that it holds the lock`, `${who} 以为自己持有锁`), idle: `${who} ${ended(mine(), client)}`, "got an error": say(`${who} got an error`, `${who} 得到错误`) }[op];
      if (s || op.startsWith("told")) said.push(s ?? say(`${who}'s connection is lost, so ${who} stops`, `${who} 的连接断开，所以停手`));
    } else if (kind === "notification") {
      said.push(op === "deleted" ? say(`${who} is notified: ${n} is gone`, `${who} 收到通知：${n} 没了`) : say(`${who} is notified: the queue has changed`, `${who} 收到通知：队列变了`));
    } else if (kind === "reply" && isLost) {
      if (!READS.includes(op)) said.push(say(`The server has done it, and ${who} does not know`, `服务器已经照办，而 ${who} 不知道`));
    } else if (kind === "reply" && err) {
      const isNew = game.stand(m.to, client).expired;
      said.push(say(`${who} learns: ${n} does not exist`, `${who} 得知：${n} 不存在`) + (isNew ? say(` (${who} has a new session, so the server answers)`, `（${who} 有了新会话，所以服务器照样答复）`) : ""));
    } else if (kind === "reply") {
      const looked = m.sets ? say(`${who} watches ${n}`, `${who} 监听 ${n}`) : say(`${n} still exists`, `${n} 还在`);
      const s = { create: say(`${who}'s znode is ${n}`, `${who} 的节点是 ${n}`), getChildren: readBy(client, m.to),
        getData: looked, exists: looked, delete: say(`${n} is deleted`, `${n} 已删除`),
        sync: say(`${who}'s server is up to date; now ${who} can look for its own znode`, `${who} 的服务器已经同步；现在 ${who} 可以找自己的节点了`) }[op];
      if (s) said.push(s);
    }
  }
  return said.map((s) => s + say(".", "。")).join(say(" ", ""));
}

// readBy says what a client has learned from the queue: whether its own znode is the first.
function readBy(client, point) {
  const who = nameOf(client), zs = game.znodes(point), k = zs.findIndex((z) => z.owner === client);
  const own = k >= 0 && number(zs[k].name), before = k > 0 && number(zs[k - 1].name);
  if (k < 0) return say(`${who} has read the queue`, `${who} 读到了队列`);
  const checks = k || game.stand(point, client).on !== zs[k].name ? "" : say(`; ${who} checks that it still exists`, `；${who} 再查一次它还在不在`);
  return k ? say(`${who} has read the queue: ${before} is before its ${own}`, `${who} 读到了队列：${before} 排在自己的 ${own} 前面`)
    : say(`${who} has read the queue: its ${own} is the first`, `${who} 读到了队列：自己的 ${own} 排在最前`) + checks;
}
// endsWith lists the znodes of a client that the server deletes with its session.
function endsWith(m) {
  const before = game.znodes(mine().at(-2)?.to ?? 0), after = game.znodes(m.to);
  return before.filter((z) => z.owner === m.client && !after.some((x) => x.name === z.name)).map((z) => number(z.name));
}
// isUnaware reports whether a client holds the lock after a choice as if nothing had happened.
const isUnaware = (m) =>
  [mine().at(-2)?.to ?? 0, m.to].every((point) => game.stand(point, m.client).state === "holds");

// knowsNoName reports whether a fault made a client ask for a znode without a name next: its list had failed.
const knowsNoName = (m) => isFault(m) && m.op === "getChildren" && game.stand(m.to, m.client).on === "null";

// lists returns the list that each client has read last, which it acts on.
function lists(g, path) {
  const read = [];
  for (const m of path) {
    for (const [client, kind, op, , err, , isLost] of m.came) {
      if (kind === "reply" && op === "getChildren" && !err && !isLost) read[client] = g.znodes(m.to);
      if (kind === "state" && ["idle", "crashed", "got an error"].includes(op)) read[client] = null;
    }
  }
  return read;
}

// ---- The board ----

const html = (s) => String(s).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const box = (x, y, w, h, look = "", r = 9) => `<rect x="${x - w / 2}" y="${y - h / 2}" width="${w}" height="${h}" rx="${r}" style="${look}"/>`;
const words = (x, y, s, look = "", kind = "", more = "") => `<text x="${x}" y="${y}" class="${kind}" style="${look}">${html(s)}${more}</text>`;
const press = (key, name, inside, more = "") => `<g role="button" tabindex="0" data-key="${key}" aria-label="${html(name)}" ${more}>${inside}</g>`;

// A plan says where things stand on a board.
function plan(svg, n) {
  const isSmall = svg.id === "second", { width, height } = svg.getBoundingClientRect();
  const isNarrow = width < 560; // there the menu is as large as fingers need it
  const p = isSmall ? { client: 70, r: 22, line: 17, chip: 118, server: 142, znode: 170, h: 206, apart: 84 }
    : isNarrow ? { client: 108, r: 34, line: 20, chip: 207, server: 272, znode: 312, h: 354, apart: 100 }
    : { client: 108, r: 34, line: 20, chip: 195, server: 250, znode: 288, h: 332, apart: 100 };
  const w = Math.max(isSmall ? 130 * n : 192 * n, isNarrow ? 390 : p.h * width / height);
  return { ...p, w, isSmall, isNarrow, x: (c) => w * (c + 0.5) / n, znodes: (all) => all.map((z, k) => ({ ...z, x: w / 2 + (k - (all.length - 1) / 2) * p.apart })) };
}

function draw(svg, g, point, path, verdict = "") {
  const n = g.data.clients, read = lists(g, path), p = plan(svg, n);
  const out = [`<g class="queue">${queue(p, g, point, point, path)}</g>`];
  Object.assign(svg, { plan: p, path }); // for what moves until it is drawn again
  svg.setAttribute("viewBox", `0 0 ${p.w} ${p.h}`);
  for (let c = 0; c < n; c++) out.push(p.isSmall ? "" : chips(p, c, point), client(p, g, point, c, read[c], path));
  if (!p.isSmall) out.push(coins(p), stamp(verdict, p.w / 2));
  svg.innerHTML = out.join("");
  const says = svg.querySelector(".stamp text");
  if (says) {
    const room = p.w - 2 * (STAMP.beside + 4), { width } = says.getBBox();
    if (width > room) says.style.fontSize = `${STAMP.size * room / width}px`;
    says.insertAdjacentHTML("beforebegin", box(p.w / 2, STAMP.y, Math.min(room, width) + 2 * STAMP.beside, STAMP.high));
  }
}

// queue draws the server with its znodes as they are at a point, and the wires and watches of the clients. A request
// that has just arrived may have changed the znodes already: then they are those of the point done.
function queue(p, g, point, done = point, path = []) {
  const n = g.data.clients, zs = p.znodes(g.znodes(done)), out = [];
  out.push(`<rect x="12" y="${p.server}" width="${p.w - 24}" height="${p.h - p.server - 8}" rx="12" class="server"/>`);
  if (!p.isSmall) out.push(words(22, p.h - 20, "ZooKeeper", "text-anchor:start", "small"));
  if (!zs.length) out.push(words(p.w / 2, p.znode - (p.isNarrow ? 8 : 0), say("empty queue: its lowest number holds the lock", "队列是空的：编号最小的持有锁"), "", "small"));
  for (let c = 0; c < n; c++) {
    const x = p.x(c), s = g.stand(point, c), after = g.stand(done, c);
    const isWritten = p.isSmall && s.op; // the small board has the request where the wire is
    out.push(`<path d="M${x} ${p.client + p.r}V${isWritten ? `${p.chip - 12}M${x} ${p.chip + 12}V` : ""}${p.server}" class="wire" ${after.state === "crashed" || isCut(after, c, path) ? 'stroke-dasharray="3 9"' : ""}/>`);
    for (const on of s.state === "waits" && !s.gaveUp ? s.watches : []) {
      const watched = zs.find((z) => z.name === on), z = watched ?? { x: p.w / 2 };
      if (!watched && on !== ".") continue; // it has fired
      const end = watched ? p.znode - (p.isSmall ? 17 : 24) : p.server, side = x < z.x ? 1 : -1;
      const from = `${x + side * p.r * 0.8} ${p.client + p.r * 0.7}`, bend = `${x + side * 70} ${p.server - 60}`;
      out.push(`<path d="M${from}C${bend} ${z.x} ${p.server - 50} ${z.x} ${end}" class="watch"/>`);
      out.push(`<circle cx="${z.x}" cy="${end}" r="5" class="eye"/>`);
    }
  }
  for (const z of zs) {
    const whose = z.owner < 0 ? "?" : nameOf(z.owner), isLeft = isOrphan(g, point, z);
    const look = `stroke:${isLeft ? "var(--bad)" : COLOURS[z.owner] ?? "var(--ink)"}`, ink = isLeft ? "fill:var(--bad)" : "";
    const says = isLeft ? say(`left by ${whose}`, `${whose} 留下的`) : say(`of ${whose}`, `${whose} 的`);
    const drawn = p.isSmall ? box(z.x, p.znode, 72, 34, look) + words(z.x, p.znode, `${number(z.name)} · ${whose}`, ink)
      : box(z.x, p.znode, 84, 48, look) + words(z.x, p.znode - 8, number(z.name), ink) + words(z.x, p.znode + 12, says, ink, "small");
    out.push(`<g data-znode="${html(z.name)}">${drawn}</g>`);
  }
  return out.join("");
}

// isOrphan reports whether nobody deletes a znode any more: all calls of its client have returned.
function isOrphan(g, point, z) {
  const s = z.owner < 0 ? {} : g.stand(point, z.owner);
  return !s.op && ["idle", "got an error"].includes(s.state);
}

function client(p, g, point, c, read, path) {
  const x = p.x(c), y = p.client, s = g.stand(point, c), [state, colour] = stateOf(g, point, c, path), inside = ["holder", "bad"].includes(colour) && s.state !== "crashed";
  const faults = p.isSmall ? [] : happens(c);
  const circle = `<circle cx="${x}" cy="${y}" r="${p.r}" style="fill:${inside ? `var(--${colour})` : "var(--paper)"};stroke:${COLOURS[c]}" class="client"/>` +
    (s.state === "crashed" ? `<path d="M${x - p.r / 2} ${y - p.r / 2}l${p.r} ${p.r}m0 ${-p.r}l${-p.r} ${p.r}" class="cross"/>` : "") +
    words(x, y, nameOf(c), inside ? "fill:var(--paper)" : s.state === "crashed" ? "paint-order:stroke;stroke:var(--paper);stroke-width:8px" : "", "name");
  const label = `${say("client ", "客户端 ")}${nameOf(c)}${say(", ", "，")}${state}${say(": what can happen to it", "：它可能遇到什么")}`;
  const out = [faults.length ? press(`client-${c}`, label, circle, `aria-expanded="${menu === `client-${c}`}"`) : circle, words(x, y - p.r - 14, state, `fill:var(--${colour})`)];
  if (!isCut(s, c, path)) out.push(s.expired && !p.isSmall ? words(x, y - p.r - 14 - p.line, say("connected again: new session", "重新连上了：新会话"), "", "small") : "");
  else if (!p.isSmall || !s.op) out.push(words(x, p.isSmall ? p.chip : (p.chip + 21 + p.server) / 2, connectionLost(), "fill:var(--bad)", "small cut")); // on the wire, under the chip
  const isGone = s.op === "delete" && !g.znodes(point).some((z) => z.name === s.on);
  if (p.isSmall) out.push(s.op ? words(x, p.chip, request(s) + (isGone ? say(": gone already", "：早就没了") : ""), "", `small wait of-${c}`) : "");
  else if (read && !faultsIn(c)) out.push(box(x, y + 53, 128, 22, "", 3), words(x, y + 53, say("has read: ", "读到：") + (read.length ? "" : say("nobody", "没有人")), "", "small", read.map((z) => `<tspan ${z.owner === c ? `style="fill:${COLOURS[c]};font-weight:700"` : ""}>${html(number(z.name))}</tspan>`).join(" ")));
  return out.join("");
}

// happens lists what can happen to a client itself.
const happens = (c) => coinsLeft() > 0 ? moves().filter((m) => m.client === c && ["crash", "expire", "give-up"].includes(m.deed)) : [];

// losses lists what can happen to the request of a client.
const losses = (c) => coinsLeft() > 0 ? ["lose-request", "lose-reply"].flatMap((deed) => moves().filter((m) => m.client === c && m.deed === deed)) : [];
// faultsIn lists what an open menu shows of a client, or is null.
const faultsIn = (c) => menu === `client-${c}` ? happens(c) : menu === `turn-${c}` ? losses(c) : null;
// passing returns the call or the request of a client that passes.
const passing = (c) => moves().find((m) => m.client === c && (m.deed === "pass" || m.deed === "unlock"));

// finishes says that a client calls Unlock: because it has worked, or had to stop.
const finishes = (c, point) => isTold(game.stand(point, c)) ? `${nameOf(c)} ${deeds().unlock}` : say(`${nameOf(c)} finishes`, `${nameOf(c)} 用完了`);

const MENU = { high: 30, apart: 34 }, TOUCHED = { high: 46, apart: 49 }; // three fit between a client and the znodes

function chips(p, c, point) {
  const x = p.x(c), y = p.chip, who = nameOf(c) + say(": ", "：");
  const all = faultsIn(c);
  if (all) {
    const { high, apart } = p.isNarrow ? TOUCHED : MENU, middle = p.isNarrow ? y + 9 : y, row = (k) => middle + (k - (all.length - 1) / 2) * apart;
    return all.map((m, k) => press(`go-${c}-${m.deed}`, who + outcome(m), box(x, row(k), 186, high, "fill:var(--bad);stroke:var(--bad)", high / 2) + words(x, row(k), outcome(m), "fill:var(--paper);font-size:14px"))).join("");
  }
  const m = passing(c), { op } = game.stand(point, c);
  if (!m && !op) return ""; // SWITCHES may not let it be the turn of a client that has a request
  const canLose = losses(c).length > 0, isUnlock = m?.deed === "unlock", says = isUnlock ? finishes(c, point) : request(game.stand(point, c));
  const lose = losses(c).length === 1 ? outcome(losses(c)[0]) : say("lose it", "丢掉它");
  // A client that finishes sends nothing yet: it is no message.
  const look = `stroke:${!m ? "var(--line)" : isUnlock ? "var(--holder);stroke-dasharray:5 4" : COLOURS[c]}`, shape = box(x, y, 184, 42, look, 21), at = canLose ? x - 17 : x;
  const effect = isUnlock ? say("press, and it calls Unlock", "按下就调用 Unlock") : `${says}${say(": press to deliver it", "：按下就送达")}`;
  const chip = m ? press(`go-${c}`, who + effect, shape + words(at, y, says) + (isUnlock ? `<title>${deeds().unlock}</title>` : ""), 'class="chip"') : shape + words(at, y, says, "fill:var(--soft)");
  const circle = (r, look) => `<circle cx="${x + 71}" cy="${y}" r="${r}" ${look}/>`; // the second is what a finger hits
  const turn = canLose ? press(`turn-${c}`, who + lose, circle(17, 'class="turn"') + circle(24, 'fill="transparent"') + words(x + 71, y, "✂\uFE0E", "fill:var(--bad);font-size:20px") + `<title>${lose}</title>`, 'aria-expanded="false"') : "";
  return `<g data-chip="${c}">${chip}${turn}</g>`;
}

const STAMP = { y: 15, high: 28, beside: 20, size: 17 }; // at the top edge, where it covers nothing

// stamp says at the top of the board what is wrong at an end.
const stamp = (verdict, x) => verdict && `<g class="stamp">${words(x, STAMP.y, verdict)}</g>`;
// verdictOf says what is wrong at an end, and whether this is what the level asks for.
function verdictOf(end, won, isShared) {
  if (won[0]?.mends) return `✓ ${goalName(won[0])}`;
  const wrong = (end?.wrong ?? []).map(kindOf).join(" · ");
  return !wrong || !won.length ? wrong && `✕ ${wrong}` + (isShared ? asBeside() : "")
    : say(`✓ Broken: ${wrong.toLowerCase()}`, `✓ 攻破了：${wrong}`);
}
const asBeside = () => say(`: as with ${level.other.en}`, `：${level.other.zh}也一样`);

function coins(p) {
  const x = p.w / Math.max(2, game.data.clients), left = coinsLeft();
  const all = Array.from({ length: level.coins }, (_, k) => `<circle cx="${x + (k - (level.coins - 1) / 2) * 40}" cy="${p.client - 12}" r="18" class="${k < left ? "coin" : "spent"}"/>`);
  const says = !level.coins ? say("no fault", "没有故障") : left ? count(left, "one fault", "faults", "次故障") : say("spent", "已用掉");
  const coin = all.join("") + words(x, p.client + 20, says, "", "small");
  return left ? press("coin", says + say(": where it can be spent", "：可以用在哪里"), coin) : coin;
}

// ---- Motion ----

const LASTS = 190, REPLIES = 400; // milliseconds, for each way: a reply is read
let pause = 1200; // milliseconds between two choices that are shown
const FADES = 300; // milliseconds, for a znode that is deleted

// fly moves a sign along a line. A lost one stops half way.
function fly(svg, from, to, says, colour, isLost, lasts = LASTS) {
  if (isStill.matches || document.hidden) return Promise.resolve();
  const g = document.createElementNS("http://www.w3.org/2000/svg", "g");
  const wide = says ? Math.max(44, [...says].reduce((w, c) => w + (c > "⺀" ? 15 : 8.5), 18)) : 12;
  g.innerHTML = box(0, 0, wide, says ? 28 : 12, `fill:${colour};stroke:${colour}`, says ? 14 : 6) + (says ? words(0, 0, says, "fill:var(--paper);font-size:14px") : "");
  g.classList.add("sign");
  g.setAttribute("transform", `translate(${from})`);
  svg.append(g);
  const end = isLost ? [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2] : to;
  return new Promise((done) => {
    const begun = performance.now(), finish = () => { g.remove(); done(); };
    const step = (now) => {
      const t = Math.min(1, (now - begun) / lasts), eased = t * (2 - t);
      g.setAttribute("transform", `translate(${from.map((v, i) => v + (end[i] - v) * eased)})`);
      if (t < 1) return requestAnimationFrame(step);
      if (!isLost) return finish();
      g.innerHTML += '<path d="M-14 -14l28 28m0 -28l-28 28" class="cross"/>';
      setTimeout(finish, 2 * LASTS);
    };
    requestAnimationFrame(step);
  });
}

// carriesOut shows what a choice does to the znodes, as soon as the server does it. What is deleted fades out.
async function carriesOut(svg, g, m, point, then) {
  const after = g.znodes(m.to), isGone = (z) => !after.some((x) => x.name === z.dataset.znode);
  const gone = [...svg.querySelectorAll("[data-znode]")].filter(isGone);
  if (gone.length && !isStill.matches && !document.hidden) {
    for (const z of gone) z.classList.add("gone");
    await rests(FADES);
  }
  if (then === halts) svg.querySelector(".queue").innerHTML = queue(svg.plan, g, point, m.to, svg.path);
}

// animate shows a choice that is made at a point. The clients change when all of it has happened.
async function animate(svg, g, m, point, then) {
  svg.path = [...svg.path, m];
  const p = svg.plan, isWrite = !READS.includes(m.op);
  const arrives = m.deed === "pass" || m.deed === "lose-reply";
  if (["crash", "expire"].includes(m.deed)) {
    svg.querySelectorAll(".wire")[m.client].setAttribute("stroke-dasharray", "3 9"); // the server hears nothing any more
    await carriesOut(svg, g, m, point, then);
  }
  const first = [...m.came.filter((e) => e[0] === m.client), ...m.came.filter((e) => e[0] !== m.client)];
  for (const [c, kind, op, on, err, names, isLost] of first) {
    if (then !== halts) return;
    const top = [p.x(c), p.client + p.r], low = [p.x(c), p.server];
    const short = (s) => p.isSmall ? "" : s;
    if (kind === "request") svg.querySelector(`.of-${c}`)?.classList.add("flies");
    if (kind === "request") await fly(svg, [p.x(c), p.chip], low, short(request({ op, on, sets: m.sets })), COLOURS[c], isLost);
    if (then !== halts) return;
    if (kind === "request" && c === m.client && isWrite && arrives) await carriesOut(svg, g, m, point, then);
    if (then !== halts) return;
    if (kind === "reply") {
      const says = err ? say(`no ${number(on)}`, `没有 ${number(on)}`) : op === "getChildren" ? g.znodes(m.to).map((z) => number(z.name)).join(" ") || "–" : op === "create" ? say(`yours: ${number(on)}`, `你的：${number(on)}`) : "✓";
      await fly(svg, low, top, short(says), COLOURS[c], isLost, REPLIES);
    }
    if (kind === "notification") await fly(svg, [p.w / 2, p.znode], top, short(op === "deleted" ? say(`${number(on)} is gone`, `${number(on)} 没了`) : say("changed", "变了")), "var(--notification)", isLost, REPLIES);
  }
}

// ---- What is shown ----

// second returns where the second board stands. When the first has come to its end, the second plays on to its own,
// unless it shows how it differs from two holders.
function second() {
  const other = games[level.beside];
  if (!other) return null;
  const answers = beside(game, mine(), other), moved = answers.flatMap((a) => a.moves), now = answers.at(-1)?.to ?? 0;
  const isBroken = other.end(now)?.wrong.length > 0;
  if (moves().length && !isBroken) return { other, now, moved, isAhead: answers.at(-1)?.moves.length > 1 };
  const more = rest(other, now), last = more.at(-1)?.to ?? now, end = other.end(last);
  return isTooMany(game, here()) ? { other, now, moved, end } : { other, now: last, moved: [...moved, ...more], end };
}
// isTooMany reports whether several clients hold the lock at a point. This ends the interleaving.
const isTooMany = (g, point) => g.end(point)?.wrong.includes("two clients hold the lock at once") ?? false;
// isStuck reports whether a client waits forever at a point, which is an end.
const isStuck = (g, point) => g.end(point)?.wrong.some((kind) => kind.includes("waits forever")) ?? false;

const best = (key = level.key) => JSON.parse(store.get("zklock-network-" + key) ?? "{}");
const remember = (known) => store.set("zklock-network-" + level.key, JSON.stringify(known));
const keyOf = (goal) => level.goals.indexOf(goal);
// isSound reports whether nobody can win, whatever he chooses.
const isSound = () => level.goals.every((goal) => !least(goal).length);
const RUNS = 3; // so many different ones, and a lock that nobody breaks says what it is
const ran = () => best().ran ?? [];
const isWon = (won) => won.includes(level.goals[0]) || Boolean(best()[0]); // now, or before

function show(focus) {
  const isOver = !moves().length, end = isOver ? game.end(here()) : null;
  if (isOver && !shown && isSound() && !best().played) {
    const ends = spells(mine());
    if (!ran().includes(ends)) remember({ ran: [...ran(), ends] });
  }
  const isFinale = isSound() && (hasGivenUp || ran().length >= RUNS || Boolean(best().played));
  if (isFinale && (!shown || hasGivenUp)) remember({ played: 1 });
  const won = level.goals.filter((goal) => reaches(goal, game, mine(), games[level.beside]));
  if (won.length && !shown) {
    const known = best();
    for (const goal of won) known[keyOf(goal)] = Math.min(known[keyOf(goal)] ?? 99, played);
    remember(known);
  }
  const goals = left().map((goal) => goalName(goal).toLowerCase()).join(say(" or ", "，或者"));
  const n = level.goals.length, areAll = n > 1 && isWon([]) && !goals;
  const asks = areAll ? say(`All ${n} are found.`, `${n} 个都找到了。`) : goals && isWon([]) && !isOver ? say(`Now: ${goals}?`, `接着找：${goals}？`) : say(placed(level.asks));
  const sentences = asks.split(/([^.。]*[?？])/); // the question is bold
  at("asks").replaceChildren(...sentences.map((part, k) => {
    const e = document.createElement(k % 2 ? "b" : "span");
    e.append(...wraps(part));
    return e;
  }));
  at("play-title").textContent = say("You play: ", "你来操纵：") + say(level.title);
  const two = second();
  at("beside").hidden = !two;
  const asked = level.goals[0]; // what breaks both locks is not what is asked for
  const isMended = Boolean(won[0]?.mends), isFound = won.length > 0 || end?.wrong.length > 0;
  const isShared = end?.wrong.includes(asked.kind) && !won.includes(asked) && two?.end.wrong.length > 0;
  draw(at("board"), game, here(), mine(), verdictOf(end, won, isShared));
  if (!hasPulsed && !shown) at("board").querySelector(".chip")?.classList.add("pulses");
  hasPulsed = true;
  at("board").classList.toggle("win", Boolean(end?.wrong.length) && !isShared);
  at("board").classList.toggle("also", Boolean(isShared));
  at("board").classList.toggle("mended", isMended);
  const all = left(), isHunt = coinsLeft() > 0; // the reader finds out by himself what is in reach
  const isSafe = all.length > 0 && !asked.mends && !game.ways(here()).bad;
  const lost = isOver || shown || isHunt && !at("give").open ? [] : isSafe ? level.goals : all.filter((goal) => !onward(goal));
  const repair = won.length ? level.repairs?.find((r, k) => r.fault ? r.fault === faultOf(mine()) : k === keyOf(won[0])) : null;
  showVerdict(isOver, end, won, repair, isShared);
  showRepair(repair);
  if (two && late !== halts) showSecond(two);
  at("link").hidden = !isFound || shown?.from === LINK; // before the beads: it takes their room
  const beads = path.map(bead);
  at("beads").replaceChildren(...beads);
  const last = beads[Math.min(played, path.length - 1)]; // the row is one line, and scrolls to what is next
  if (last) at("beads").scrollLeft = last.offsetLeft + last.offsetWidth + 5 - at("beads").clientWidth;
  at("give-up").textContent = !all.length ? say("Show me", "演示") : level.hints ? say("A hint", "提示") : say("Give up?", "放弃？");
  at("hint").textContent = hint(all);
  at("way").textContent = at("give").open && !isOver && all.length ? wayFromHere(all[0]) : "";
  at("undo").disabled = at("again").disabled = !played;
  showHow(all.length > 0 && all.every((goal) => lost.includes(goal)));
  at("note").textContent = level.note ? say(level.note) : "";
  const following = data.levels[data.levels.indexOf(level) + 1];
  at("next").hidden = !following || !isWon(won);
  const hasWon = isSound() ? isFinale : hasGivenUp || level.goals.some((goal, k) => best()[k]) || won.length > 0;
  at("every").hidden = !isOver || (isSound() ? isFinale : !hasWon);
  const every = figure(game.ways(0).all);
  at("every").textContent = isSound() ? say(`Give up? See all ${every} ways to play`, `放弃？看全部 ${every} 种走法`) : say(`All ${every} ways to play`, `看全部 ${every} 种走法`);
  showIdeas(isSound() && !isFinale && (isOver || !played));
  showFinale(isFinale);
  showGoals(two, lost, isFinale || hasGivenUp || isWon(won));
  const asksNext = shown?.from === LINK ? say("Your turn: ", "轮到你了：") : say("Next: ", "下一把：");
  if (following) at("next").textContent = asksNext + say(following.title) + " →";
  at("look").hidden = !two || !isFound;
  if (two) at("look").textContent = say(`See ${level.other.en}`, `看${level.other.zh}`);
  at("hunt").hidden = !isFound || !all.length;
  at("hunt").textContent = !isWon(won) ? say("Hunt on: ", "继续找：") + goalName(level.goals[0])
    : say(`Hunt on: ${count(all.length, "1 goal", "goals", "")} left`, `继续找：还剩 ${all.length} 个目标`);
  at("hunt").className = at("next").hidden ? "main" : "";
  showLevels();
  at("all").hidden = !hasWon;
  if (hasWon) icicle();
  const place = `#${level.key}/${spells(mine())}`;
  address(place);
  if (!shown) keep(place);
  showTerms();
  if (focus) (document.querySelector(`[data-key="${focus}"]`) ?? at("board").querySelector(`[data-key^="${focus.slice(0, 4)}"]`) ?? at("board").querySelector("[data-key^=go]") ?? at(at("next").hidden ? "undo" : "next")).focus({ preventScroll: true });
}

// showFinale says of a lock that nobody breaks how far that goes, and which mistakes the reader has met on his way.
function showFinale(isFinale) {
  at("finale").hidden = at("sound").hidden = !isFinale;
  document.querySelector("footer").hidden = isFinale; // which has the same link
  at("give").hidden = isSound();
  if (!isFinale) return;
  const all = figure(game.ways(0).all), coins = count(level.coins, "one fault", "faults", "次故障");
  at("sound").textContent = say(`✓ ${all} interleavings of ${game.data.clients} clients with ${level.coins ? coins : "no fault"}: none is wrong.`,
    `✓ ${game.data.clients} 个客户端、${coins}，共 ${all} 种交错次序：没有一种出错。`);
  const hunted = data.levels.filter((l) => l.met.en);
  at("met-title").hidden = !hunted.length;
  at("met").replaceChildren(...hunted.map((l) => {
    const line = document.createElement("li"), isMet = best(l.key)[0];
    line.className = isMet ? "" : "shown";
    line.textContent = `${isMet ? "✓" : "○"} ${say(l.title)}${say(": ", "：")}${isMet ? say(l.met) : say("not found yet", "还没找到")}`;
    return line;
  }));
}

function showLevels() {
  at("levels").dataset.title = say(level.title);
  for (const b of at("levels").children) {
    const l = data.levels.find((l) => l.key === b.dataset.key), { key, title } = l;
    b.ariaCurrent = key === level.key ? "true" : "false";
    const tick = best(key)[0] || best(key).played ? "✓" : "";
    b.innerHTML = `${data.levels.indexOf(l) + 1} <span>${html(say(title))}</span><i>${tick}</i>`;
    b.ariaLabel = b.textContent.trim();
  }
}

// showRepair shows the lines of code that repair what was found.
function showRepair(repair) {
  at("repair").hidden = !repair;
  if (!repair) return;
  at("code").replaceChildren(...repair.code.split("\n").map((textContent) =>
    Object.assign(document.createElement({ "+": "ins", "-": "del" }[textContent[0]] ?? "span"), { textContent: textContent + "\n" })));
  at("step").textContent = say(`The repair, in step ${repair.step} →`, `修法，见第 ${repair.step} 步 →`);
  at("step").href = repair.page;
}

function showVerdict(isOver, end, won, repair, isShared) {
  const says = at("says"), parts = [];
  const p = (textContent, className = "") =>
    textContent && parts.push(Object.assign(document.createElement("p"), { textContent, className }));
  const ends = (end?.says ?? []).map(say).join(say("; ", "；"));
  const explain = () => repair?.says && p(say(placed(repair.says)).replaceAll("{X}", nameOf(mine().find(isFault)?.client ?? 0)));
  const from = shown && say(shown.from);
  if (shown && !isOver) p(played
    ? say(`${from}: choice ${played} of ${shown.count}.`, `${from}：第 ${played} 次选择，共 ${shown.count} 次。`)
    : say(`${from}: ${choicesIn(shown.count)}. Watch.`, `${from}：${choicesIn(shown.count)}。请看。`), "shown");
  if (!isOver && (played || path.length)) {
    p(played ? described(mine().at(-1)) : say("All taken back.", "全部撤回了。"));
    if (shown && played === shown.count) p(say("This is all. Go on from here, or begin again.", "就到这里。可以接着走，也可以从头开始。"));
  } else if (isOver && end.wrong.length) {
    const wrong = end.wrong.map((k) => kindOf(k)).join(say("; ", "；"));
    const why = orphan(end), more = why ? "" : ends;
    const whose = shown?.from === LINK ? say("The link breaks it", "这个链接攻破了它")
      : shown ? say("This breaks it", "这样就攻破了") : say("You broke it", "你攻破了它");
    const fullStop = say(".", "。");
    if (isShared) p(say(`Not yet: both hold it, but so they do with ${level.other.en}. Find what only this lock does wrong.`, `还不算：两个客户端都持有了锁，可是换成${level.other.zh}也一样。请找出只有这把锁才犯的错。`), "win");
    else p(whose + say(`, in ${choicesIn(played)}: `, `，用了 ${choicesIn(played)}：`) + wrong + fullStop +
      (more ? " " + more + fullStop : ""), "bad win");
    if (why) p(why);
    explain();
  } else if (isOver && won.length) {
    const whose = shown?.from === LINK ? say("The link finds it", "这个链接找到了") : shown ? say("This is the message", "就是这条消息") : say("You found it", "你找到了");
    p(whose + say(`, in ${choicesIn(played)}.`, `，用了 ${choicesIn(played)}。`), "right win");
    explain();
  } else if (isOver) {
    const unspent = coinsLeft() ? say(" The fault is not spent.", "故障还没有用掉。") : "";
    const { kind, mends } = level.goals[0], isEarly = mends && wrongBeside(game, mine(), games[level.beside]).includes(kind);
    const early = isEarly && say(" Not yet: nobody held the lock when the message was lost.", "还不算：消息丢失的时候，还没有客户端持有锁。");
    p(unspent + (early || (isSound() ? tries() : say(" Try another.", "再试一次。"))) || " ");
    parts.at(-1).prepend(Object.assign(document.createElement("b"), { textContent: say("It held: ", "它守住了：") + ends + say(".", "。"), className: isSound() ? "right" : "" }));
  }
  if (!parts.length) p(isSound() && tries() || say("Nothing here is simulated: all of it was recorded on a real ZooKeeper server.", "这里没有任何东西是模拟的：全都录自真实的 ZooKeeper 服务器。"), "shown");
  says.replaceChildren(...parts);
}

// tries says how far the reader is with a lock that nobody breaks, until he has seen all of it.
function tries() {
  if (best().played) return "";
  const every = figure(game.ways(0).all), n = Math.min(RUNS, ran().length);
  return say(` Your tries: ${n} of ${RUNS}. After the last, the page shows all ${every} ways to play.`, `你有 ${RUNS} 次机会，已经试了 ${n} 次。试完以后，这一页把 ${every} 种走法全部摆出来。`);
}

// showIdeas offers to try what broke the other locks: each way that the reader has won.
function showIdeas(isOffered) {
  const won = data.levels.filter((l) => l !== level && !l.goals[0].mends && best(l.key)[0]);
  at("ideas").hidden = !isOffered || !won.length;
  at("ideas").replaceChildren(say("Try here what broke: ", "在这里试试攻破别的锁的走法："), ...won.map((l) => {
    const b = Object.assign(document.createElement("button"), { type: "button", textContent: say(l.title) });
    b.onclick = () => {
      const all = beside(games[l.key], least(l.goals[0], l), game).flatMap((a) => a.moves);
      at("how").scrollIntoView({ block: "nearest" });
      replay([...all, ...rest(game, all.at(-1).to)]);
    };
    return b;
  }));
}

// orphan says why a znode is left behind, if a lost message is the reason, and what repairs that.
function orphan(end) {
  const lost = mine().find((m) => ["lose-reply create", "lose-request delete"].includes(`${m.deed} ${m.op}`));
  if (!lost || !end.wrong.includes("a znode is left behind")) return "";
  const who = nameOf(lost.client), other = nameOf(1 - lost.client), isWaited = end.wrong.some((kind) => kind.includes("waits forever"));
  const why = lost.op === "create" ? say(`${who}'s create was carried out, but the reply was lost, and ${who} got an error. ${who} is alive, so its session does not end, and nobody deletes that znode`, `${who} 的节点其实已经创建，但响应丢了，${who} 只得到错误。${who} 还在运行，会话不会结束，所以没有人去删除这个节点`)
    : say(`${who}'s delete was lost on its way. So its znode stays`, `${who} 的删除请求在路上丢了，所以它的节点还留着`);
  const repair = lost.op === "create" ? say(" The repair: before an error is returned, look in the queue for the client's own znode.", "修法：返回错误之前，先在队列里找自己的节点。")
    : say(" The repair: delete again, until the server has answered.", "修法：一再删除，直到服务器答复为止。");
  return why + (isWaited ? say(`, and ${other} waits for it.`, `，而 ${other} 在等它。`) : say(".", "。")) + repair;
}

// showTerms explains each word of the page from where it first stands on it, and the first three wherever a lock can break.
function showTerms() {
  const read = ["asks", "board", "says", "second", "all", "finale"].map((id) => at(id)).filter((e) => !e.hidden).map((e) => e.textContent).join(" ");
  for (const term of document.querySelectorAll("#terms div")) {
    if (!term.dataset.when) term.hidden = isSound();
    else if (new RegExp(term.dataset[reader === "zh" ? "whenZh" : "when"]).test(read)) term.hidden = false;
  }
  if (at("words")) at("words").firstChild.textContent = say("Words", "词") + ` (${document.querySelectorAll("#terms div:not([hidden])").length})`;
}

// wraps lets a Chinese text break between words only.
function wraps(text) {
  if (reader !== "zh" || !Intl.Segmenter) return [text];
  const all = [...new Intl.Segmenter("zh", { granularity: "word" }).segment(text)];
  return all.flatMap(({ segment, isWordLike }, k) => isWordLike && k && !/[（“]$/.test(all[k - 1].segment) ? [document.createElement("wbr"), segment] : [segment]);
}

// placed says where the second board is: on a narrow screen, below the first.
const isNarrow = matchMedia("(max-width: 760px)");
const folds = () => { if (at("words")) at("words").open = !isNarrow.matches; }; // under the board, they push the second one
isNarrow.onchange = folds;
folds();
const placed = ({ en, zh }) => isNarrow.matches ? { en: en.replace("on the right", "below").replace("beside it", "below"), zh: zh.replaceAll("旁边", "下面") } : { en, zh };

function showSecond(two) {
  const { other, now, moved, isAhead, end } = two;
  showBelow(two);
  at("beside-title").textContent = say(`The same choices with ${level.other.en}`, `同样的选择，换成${level.other.zh}`);
  draw(at("second"), other, now, moved);
  const [head, more] = !end ? ["", isAhead ? wentAhead() : ""]
    : end.wrong.length ? [(game.end(here())?.wrong.length ? say("This is also wrong here: ", "这里也出错：") : say(`This breaks ${level.other.en}: `, `${level.other.zh}被攻破了：`)) +
      end.wrong.map(kindOf).join(say("; ", "；")) + say(".", "。"), ""]
    : [say(`✓ Played on to the end, ${level.other.en} stays right`, `✓ 走到最后，${level.other.zh}一直正确`),
      (other.moves(now).length ? say(". The drawing shows this moment: ", "。图中是这一刻：") + statesAt(other, now, moved)
        : say(": ", "：") + end.says.map(say).join(say("; ", "；"))) + say(".", "。")];
  const className = end?.wrong.length ? "bad" : "right";
  const b = Object.assign(document.createElement("b"), { textContent: head, className });
  at("beside-says").replaceChildren(b, more);
}
const capital = (s) => s[0].toUpperCase() + s.slice(1);
// showBelow says, on a phone, how the other board differs since the fault, and leads there.
function showBelow({ other, now, moved, end }) {
  at("says").querySelector("button")?.remove();
  const all = [...Array(game.data.clients).keys()].filter((c) => stateOf(other, now, c, moved)[0] !== stateOf(game, here(), c, mine())[0]);
  if (!isNarrow.matches || !moves().length || coinsLeft() === level.coins || !all.length) return;
  const { en, zh } = level.other, states = statesAt(other, now, moved, all);
  const textContent = end?.wrong.length ? say(`${capital(en)}, below, is broken now: ${states} ↓`, `下面的${zh}已经出错：${states} ↓`)
    : say(`With ${en}, below: ${states} ↓`, `下面换成${zh}：${states} ↓`);
  at("says").append(Object.assign(document.createElement("button"), { type: "button", textContent, onclick: at("look").onclick }));
}
function wentAhead() {
  const { en, zh } = level.other;
  return say(`${capital(en)} sends more requests here; they follow by themselves.`,
    `${zh}在这里多发了几个请求，它们会自动跟上。`);
}
// statesAt says what the board says of each client.
function statesAt(g, point, path, clients = [...Array(g.data.clients).keys()]) {
  return clients.map((c) => {
    const s = g.stand(point, c), lost = isCut(s, c, path) && !isTold(s) && s.state !== "got an error" ? say(": ", "：") + connectionLost() + say(", ", "，") : " ";
    return nameOf(c) + lost + stateOf(g, point, c, path)[0].replace("HOLDS", "holds");
  }).join(say("; ", "；"));
}

// verb says a choice in a word or two.
const verb = ({ deed, op, sets }) => ({
  unlock: "Unlock", crash: say("crashes", "崩溃"), expire: say("cut off", "失联"), "give-up": say("gives up", "放弃"),
})[deed] ?? {
  create: say("create", "创建"), getChildren: say("list", "列出"), delete: say("delete", "删除"), sync: say("sync", "同步"),
}[op] ?? (sets ? say("watch", "监听") : say("look", "查看"));

const worded = (m) => verb(m) + (m.deed.startsWith("lose") ? say(" lost", "丢失") : "");

function bead(m, k) {
  const b = document.createElement("button");
  b.type = "button";
  b.className = (isFault(m) ? "fault " : "") + (k >= played ? "ahead" : "");
  b.style.borderColor = COLOURS[m.client];
  b.innerHTML = `${nameOf(m.client)}<span> ${worded(m)}</span>`;
  b.dataset.key = `bead-${k}`;
  b.ariaLabel = b.title = `${k + 1}. ${nameOf(m.client)}${say(": ", "：")}${m.op ? request(m) + say(": ", "：") : ""}${deeds()[m.deed]}`;
  b.ariaCurrent = k === played - 1 ? "step" : "false";
  b.onclick = () => scrub(k + 1, `bead-${k}`);
  return b;
}

function goalName({ kind, faults, mends }) {
  if (!faults || !level.coins) return kindOf(kind);
  if (faults.join() === "") return kindOf(kind) + say(", and the fault is not spent", "，而且故障没有用掉");
  if (mends) return say(`Goes on here; ${level.other.en} waits forever`, `这里拿得到锁，${level.other.zh}永远等下去`);
  return kindOf(kind) + say(`, but not with ${level.other.en}`, `，而${level.other.zh}不会`);
}
const least = (goal, l = level) => goal.least ??= shortest(goal, games[l.key], l.coins, games[l.beside]) ?? [];

// onward returns the shortest way from here to a goal, from the first choice on; or null.
const onward = (goal) => shortest(goal, game, level.coins, games[level.beside], mine());
// left returns the goals that the reader has not reached yet, and that somebody can reach.
const left = () => level.goals.filter((goal, k) => !best()[k] && least(goal).length);
// hint says a hint for the first of these goals.
function hint(goals) {
  const [goal] = goals, named = goals.length > 1 ? goalName(goal) + say(": ", "：") : "";
  return level.hints && goal ? named + say(level.hints[keyOf(goal)]) : "";
}
// wayFromHere says how far a goal is.
function wayFromHere(goal) {
  const way = onward(goal), more = way && choicesIn(way.length - played);
  const what = level.hints ? say("It is ", "") : goalName(goal) + say(": ", "：");
  return way ? say(`${what}${more} from here.`, `${what}从这里还差 ${more}。`) : say("Out of reach from here: take a choice back.", "从这里到不了：撤回一步吧。");
}
// faultsNow says what can be pressed for a fault.
function faultsNow() {
  const all = Array.from({ length: game.data.clients }, (_, c) => c);
  const whose = all.filter((c) => happens(c).length).map(nameOf);
  const loses = all.some((c) => losses(c).length) && say("✂ loses a message", "按 ✂ 丢掉消息"), more = loses ? say(" for the rest", "看别的") : "";
  return [loses, whose.length && say(`press ${whose.join(" or ")}${more}`, `按 ${whose.join(" 或 ")} ${more}`.trim())].filter(Boolean).join(say("; ", "，"));
}

const whoseMenu = () => nameOf(menu.split("-")[1]);

// showHow says what can be pressed now. In the first level, what a fault is spent on is said after the first choice.
function showHow(isLost) {
  const isSpent = level.coins && !coinsLeft();
  at("undo").classList.toggle("pulses", isSpent && isLost);
  const faults = level.coins && (played || level !== data.levels[0]) && coinsLeft() ? faultsNow() : "";
  at("how").textContent = shown && played < shown.count ? ""
    : !moves().length ? say("The end: take choices back, or begin again.", "结束了：撤回几步，或者从头开始。")
    : menu ? say(`Choose what happens to ${whoseMenu()}, or press elsewhere to cancel.`, `选择 ${whoseMenu()} 会遇到什么；按别处就取消。`)
    : isSpent && isLost ? say("Nothing more to find from here: take a choice back.", "从这里走下去，找不到新的错了：撤回一步吧。")
    : isSpent ? say("Fault spent: deliver the rest.", "故障已用掉：把其余的请求都送达。")
    : faults ? say(`Press to deliver. Or make one thing go wrong: ${faults}.`, `按一下就送达。你也可以让一件事出错：${faults}。`)
    : say("Press a request, or drag it down, to deliver it.", "按一个请求，或者把它往下拖，就送达服务器。");
}

// showGoals shows a card for each goal. If isKnown is set, the level is over, and what nobody can reach is said.
function showGoals(two, lost, isKnown) {
  const known = best(), isOver = !moves().length;
  at("goals").replaceChildren(...level.goals.map((goal, k) => {
    const card = document.createElement("div"), n = known[k], few = (n || hasGivenUp) && least(goal).length;
    card.className = "goal" + (n ? " found" : "");
    const b = document.createElement("b"), small = document.createElement("small");
    b.append(...wraps(goalName(goal)));
    if (n) b.prepend(Object.assign(document.createElement("span"), { textContent: "✓ ", className: "right" }));
    const cannot = isKnown && !least(goal).length;
    if (cannot) card.classList.add("never");
    const isShort = isNarrow.matches;
    small.textContent = n ? (isShort ? say(`${n}; fewest ${few}`, `${n} 次，最少 ${few}`) : say(`you: ${n}; fewest: ${few}`, `你：${n} 次；最少：${few} 次`)) + (n === few ? " ★" : "")
      : lost.includes(goal) ? isShort ? say("out of reach", "到不了") : say("out of reach from here", "从这里到不了")
      : cannot ? say("cannot happen ✓", "不会发生 ✓")
      : goal.mends && !isOver && two.end?.wrong.includes(goal.kind) ? say("now finish here", "在这里走完")
      : few ? isShort ? say(`fewest ${few}`, `最少 ${few} 次`) : say(`the fewest: ${choicesIn(few)}`, `最少：${choicesIn(few)}`)
      : say("not found yet", "还没找到");
    card.append(b, small);
    return card;
  }));
}

// ---- What the reader does ----

// halt stops what the page plays by itself: the choice that is under way there has not been made. One of the reader's has.
function halt() {
  halts++;
  if (isMoving()) played++;
  if (isBusy) path = mine();
  isBusy = false;
  for (const sign of document.querySelectorAll(".sign")) sign.remove();
}

const isMoving = () => isBusy && !shown; // a choice of the reader's is under way

async function go(m, focus = `go-${m.client}`) {
  const then = halts;
  isBusy = true;
  const before = second(), signs = at("board").querySelectorAll(`[data-chip="${m.client}"], [data-key^="go-${m.client}-"]`);
  path = [...mine(), m];
  menu = "";
  for (const sign of signs) sign.classList.add("flies"); // the chip or the menu is not seen, but keeps the focus
  const point = mine().at(-1)?.to ?? 0, others = before ? answer(game, m, before.other, before.now) : [];
  if (before) showSecond(before); // a choice of the reader's may have halted it
  const follows = (async () => {
    let now = before?.now;
    for (const x of others) { await animate(at("second"), before.other, x, now, then); now = x.to; }
  })();
  await animate(at("board"), game, m, point, then);
  if (then !== halts) return;
  played++;
  isBusy = false;
  late = then;
  show(focus);
  if (!moves().length) endedAt = performance.now();
  if (!moves().length && isNarrow.matches) at(at("next").hidden ? "says" : "next").scrollIntoView({ block: "nearest" });
  await follows;
  if (then !== halts) return;
  late = -1;
  if (before) showSecond(second());
}

const LINK = { en: "From the link", zh: "来自链接" }, SHOWN = { en: "Shown", zh: "演示" };
const rests = (ms) => isStill.matches ? null : new Promise((done) => setTimeout(done, ms));

// replay plays a path by itself.
async function replay(whole, from = SHOWN) {
  halt();
  const then = halts;
  shown = { from, count: whole.length };
  path = []; played = 0;
  show();
  if (from === LINK) await rests(4 * LASTS); // so that one reads what comes
  for (const m of whole) {
    if (then !== halts) return;
    await go(m, "");
    await rests(pause);
  }
}

function scrub(n, focus) {
  halt();
  played = Math.max(0, Math.min(path.length, n));
  menu = "";
  show(focus);
}

function pressed(key) {
  const [what, c, deed] = [key.split("-")[0], Number(key.split("-")[1]), key.split("-").slice(2).join("-")];
  halt();
  if (what === "go") {
    shown = null;
    return go(deed ? moves().find((m) => m.client === c && m.deed === deed) : passing(c));
  }
  menu = what === "coin" || menu === key ? "" : key;
  show(faultsIn(c)?.length ? `go-${c}-${faultsIn(c)[0].deed}` : key);
  if (what === "coin") spends();
}
// spends shows all that can spend the coin.
function spends() {
  at("how").textContent = say(`Spend it here: ${faultsNow()}.`, `用在这里：${faultsNow()}。`);
  for (const e of at("board").querySelectorAll("[data-key^=client], [data-key^=turn]")) e.classList.add("spends");
}

// meant returns the sign that is meant by a press. A choice of the reader's that is under way is finished at once. The
// press counts if the sign is there then as it was before. So a second press on the chip that is under way finishes its
// motion, and does not choose the next request, which nobody has seen.
function meant(sign, now, focus) {
  if (!isMoving()) return sign;
  const was = sign?.closest(".flies") ? null : sign?.ariaLabel;
  halt();
  show(focus);
  return was && now()?.ariaLabel === was ? now() : null;
}
const signIn = (element) => element?.closest("#board [data-key]");

at("board").addEventListener("click", (e) => {
  if (drag?.moved) return;
  const sign = meant(signIn(e.target), () => signIn(document.elementFromPoint(e.clientX, e.clientY)));
  if (sign) pressed(sign.dataset.key);
});
addEventListener("click", (e) => { // outside the menu
  if (isBusy || drag?.moved || e.target.closest("[data-key^=client], [data-key^=turn], [data-key^=go-], [data-key=coin]")) return;
  cancels();
});
// cancels closes the menu, or no longer shows what can spend the coin. The focus stays where it was.
function cancels() {
  if (menu) pressed(menu);
  else if (at("board").querySelector(".spends")) show("coin");
}
at("board").addEventListener("keydown", (e) => {
  const key = signIn(e.target)?.dataset.key;
  if (!key) return;
  if (e.key === "Enter" || e.key === " ") {
    e.preventDefault();
    if (e.repeat) return; // a key that is held is one press
    const sign = meant(signIn(e.target), () => at("board").querySelector(`[data-key="${key}"]`), key);
    if (sign) pressed(sign.dataset.key);
  }
});
addEventListener("keydown", (e) => {
  if (e.key === "Escape") cancels();
  if (e.key === "Backspace" && played) { e.preventDefault(); back("go-0"); }
});
at("beads").addEventListener("keydown", (e) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
  if (step) { e.preventDefault(); halt(); scrub(played + step, `bead-${Math.max(0, played + step - 1)}`); }
});
at("beads").addEventListener("pointermove", (e) => { // with the button down: a finger scrolls
  const key = e.buttons && e.pointerType === "mouse" && document.elementFromPoint(e.clientX, e.clientY)?.closest("[data-key^=bead]")?.dataset.key;
  if (key && Number(key.slice(5)) !== played - 1) scrub(Number(key.slice(5)) + 1);
});

// The coin that is dragged to a client, or to its request, opens the menu there.
function dragsCoin(dx, dy) {
  const coin = at("board").querySelector("[data-key=coin]");
  if (!drag.moved && Math.hypot(dx, dy) < 8) return;
  if (!drag.moved) spends();
  drag.moved = true;
  coin.setAttribute("transform", `translate(${dx} ${dy})`);
  coin.style.pointerEvents = "none"; // what is under it is meant
}
function drops(e) {
  const under = document.elementFromPoint(e.clientX, e.clientY);
  const chip = under?.closest("#board [data-chip]")?.dataset.chip;
  const key = chip ? `turn-${chip}` : signIn(under)?.dataset.key;
  if (at("board").querySelector(`.spends[data-key="${key}"]`)) pressed(key);
  else show("coin");
}

// A chip that is dragged down the wire passes. Off the wire it is lost: to its side the request, further down the reply.
let drag = null;
at("board").addEventListener("pointerdown", (e) => {
  const chip = e.target.closest(".chip")?.parentNode, sign = chip ?? e.target.closest("[data-key=coin]");
  if (sign && !isMoving()) halt();
  drag = sign && !isBusy ? { chip, c: Number(chip?.dataset.chip), x: e.clientX, y: e.clientY, moved: false } : null;
});
addEventListener("pointermove", (e) => {
  if (!drag || !e.buttons) return;
  const { chip, c } = drag, scale = at("board").viewBox.baseVal.width / at("board").clientWidth;
  const dx = (e.clientX - drag.x) * scale, dy = (e.clientY - drag.y) * scale, isFirst = !drag.moved && Math.hypot(dx, dy) > 8;
  if (!chip) return dragsCoin(dx, dy);
  const label = chip.querySelector("text");
  if (isFirst) {
    at("board").append(chip); // over all that it may cross
    Object.assign(drag, { moved: true, says: label.textContent });
  }
  if (!drag.moved) return;
  const { server, chip: y } = at("board").plan, lost = losses(c), isBeside = Math.abs(dx) > 70, touches = dy > server - y - 21;
  drag.means = isBeside ? lost.find((m) => m.deed === (dy > 40 ? "lose-reply" : "lose-request")) ?? lost[0]
    : touches ? passing(c) : undefined;
  chip.setAttribute("transform", `translate(${dx} ${dy})`);
  label.textContent = drag.means ? outcome(drag.means) : drag.says;
  label.style.fill = drag.means && isFault(drag.means) ? "var(--bad)" : "";
});
addEventListener("pointerup", (e) => {
  if (!drag?.moved) return;
  const { c, means, chip } = drag;
  setTimeout(() => { drag = null; }); // after the click
  if (!chip) return drops(e);
  if (!means) return show(`go-${c}`);
  shown = null;
  go(means);
});
addEventListener("pointercancel", () => {
  if (drag?.moved) show();
  drag = null;
});

function back(focus) {
  halt();
  scrub(played - 1, focus);
}
at("beads").onscroll = ({ target }) => target.classList.toggle("more", target.scrollLeft > 5); // the first choices are out of sight
at("undo").onclick = () => back();
// begin enters a level by a button that is hidden or disabled then: the focus goes to the first chip.
function begin(key) {
  enter(key);
  show("go-0");
}
at("again").onclick = () => begin(level.key);
at("hunt").onclick = () => { begin(level.key); at("asks").scrollIntoView({ block: "nearest" }); };
at("look").onclick = () => at("beside").scrollIntoView();
at("next").onkeydown = (e) => { if (e.repeat) e.preventDefault(); };
at("next").onclick = (e) => {
  const isKey = !e.detail;
  if (isKey && performance.now() - endedAt < HASTE) return;
  begin(data.levels[data.levels.indexOf(level) + 1].key);
  scrollTo(0, 0);
};
at("every").onclick = () => {
  hasGivenUp ||= isSound();
  show();
  at("all").scrollIntoView();
  at("icicle").focus({ preventScroll: true });
};
at("link").onclick = async () => {
  try { await navigator.clipboard.writeText(location.href); } catch { /* the address has it */ }
  at("link").textContent = say("Copied", "已复制");
};
at("give").ontoggle = () => {
  if (!at("give").open) return isBusy || show();
  halt();
  const isHint = level.hints && left().length > 0; // then the answer is that of the hint, and does not name it
  const ways = isHint ? left().slice(0, 1) : level.goals.filter((goal) => least(goal).length);
  hasGivenUp ||= !level.hints;
  at("answers").replaceChildren(...ways.map((goal) => {
    const textContent = isHint ? say("Show me", "演示") : say("Show me: ", "演示：") + goalName(goal);
    const b = Object.assign(document.createElement("button"), { type: "button", textContent });
    b.onclick = () => { hasGivenUp = true; at("how").scrollIntoView({ block: "nearest" }); replay(least(isHint && left()[0] || goal)); };
    return b;
  }));
  show();
};

at("help").addEventListener("toggle", ({ target }) => { // which may open below the screen of a phone
  if (isNarrow.matches && target.open) requestAnimationFrame(() => target.scrollIntoView({ block: "nearest" }));
}, true);

// ---- All interleavings, one column each ----

const figure = (n) => n.toLocaleString("en");

const ROW = 16; // pixels, for each choice
const NEAR = 6, NEAR_TOUCH = 12; // pixels: so far from a red column, it is meant

function icicle() {
  const canvas = at("icicle"), css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(`--${name}`).trim();
  const ways = (point) => game.ways(point);
  const total = ways(0), row = Math.round(ROW * devicePixelRatio), ends = [];
  canvas.style.height = `${(total.deep + 1) * ROW}px`;
  const w = canvas.width = canvas.clientWidth * devicePixelRatio, unit = w / total.all;
  canvas.height = (total.deep + 1) * row;
  const ink = canvas.getContext("2d");
  const labels = [], own = new Set(); // of the blocks that are wide enough, and which blocks are the reader's
  ink.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  ink.textBaseline = "middle";
  const visit = (point, x, depth, says = say("the beginning", "开始")) => {
    const n = ways(point), wide = n.all * unit, gap = wide > 4 ? 1 : 0;
    ink.fillRect(x, depth * row, wide - gap, row - 1);
    if (wide > 2 * row && ink.measureText(says).width < wide - row / 2) labels.push([says, x, depth]);
    const all = game.moves(point);
    if (!all.length && n.bad) ends.push([x, depth]);
    if (wide < 0.1 && !n.bad) return;
    for (const m of all) {
      visit(m.to, x, depth + 1, `${nameOf(m.client)} ${m.deed.startsWith("lose") ? deeds()[m.deed] : verb(m)}`);
      x += ways(m.to).all * unit;
    }
  };
  ink.fillStyle = colour("line");
  visit(0, 0, 0);
  ink.fillStyle = colour("bad"); // only where an interleaving ends wrong, and wide enough to be seen
  for (const [x, depth] of ends) ink.fillRect(x, depth * row, Math.max(unit, 2 * devicePixelRatio), row - 1);
  let x = 0, point = 0;
  mine().forEach((m, depth) => {
    for (const other of game.moves(point)) { if (other.choice === m.choice) break; x += ways(other.to).all * unit; }
    point = m.to;
    const cell = [x, (depth + 1) * row, Math.max(4 * devicePixelRatio, ways(point).all * unit), row - 1], rim = devicePixelRatio;
    own.add(`${x} ${depth + 1}`);
    ink.fillStyle = colour("request");
    ink.fillRect(...cell);
    if (!game.end(point)?.wrong.length) return;
    ink.fillRect(cell[0] - 2 * rim, cell[1], cell[2] + 4 * rim, cell[3]); // its red end keeps its colour, with a blue rim
    ink.fillStyle = colour("bad");
    ink.fillRect(cell[0], cell[1] + 2 * rim, cell[2], cell[3] - 4 * rim);
  });
  for (const [says, x, depth] of labels) {
    ink.fillStyle = colour(own.has(`${x} ${depth}`) ? "paper" : "ink");
    ink.fillText(says, x + row / 4, (depth + 0.5) * row);
  }
  const pathOf = (column) => {
    let before = column; // so many columns are left of it
    const whole = [];
    const leads = (m) => {
      const n = ways(m.to).all, isIn = before < n;
      if (!isIn) before -= n;
      return isIn;
    };
    for (let m; (m = game.moves(whole.at(-1)?.to ?? 0).find(leads));) whole.push(m);
    return whole;
  };
  const isRed = (column) => ways(pathOf(column).at(-1)?.to ?? 0).bad > 0;
  // aimed returns the column that a pointer means: a red one that is near, or the one under it.
  const aimed = (e) => {
    const perPixel = total.all / canvas.clientWidth, last = total.all - 1;
    const under = Math.max(0, Math.min(last, Math.floor(e.offsetX * perPixel)));
    const reach = Math.floor((e.pointerType === "touch" ? NEAR_TOUCH : NEAR) * perPixel);
    for (let off = 0; total.bad && off <= reach; off++) {
      const red = [under - off, under + off].find((column) => column >= 0 && column <= last && isRed(column));
      if (red !== undefined) return red;
    }
    return under;
  };
  const aim = at("aim");
  at("aimed").textContent = "";
  const aims = (column) => {
    aim.hidden = false;
    aim.className = isRed(column) ? "red" : "";
    aim.style.left = `${column / total.all * 100}%`;
    aim.style.width = `${100 / total.all}%`;
    canvas.ariaValueNow = column + 1;
    const whole = pathOf(column), wrong = game.end(whole.at(-1).to).wrong.map(kindOf).join(say("; ", "；"));
    at("aimed").textContent = `${whole.map((m) => `${nameOf(m.client)} ${worded(m)}`).join(" · ")} → ${wrong || say("it holds", "守住了")}`;
    canvas.ariaValueText = `${column + 1}${say(": ", "：")}${at("aimed").textContent}`;
  };
  const plays = (column) => {
    aim.hidden = true;
    at("how").scrollIntoView();
    replay(pathOf(column));
  };
  canvas.ariaValueMax = total.all;
  canvas.onpointerdown = canvas.onpointermove = (e) => aims(aimed(e));
  canvas.onpointerleave = canvas.onblur = () => { aim.hidden = true; };
  canvas.onclick = (e) => plays(aimed(e));
  canvas.onkeydown = (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key], now = (canvas.ariaValueNow ?? 1) - 1;
    if (e.key === "Enter") plays(now);
    if (!by) return;
    e.preventDefault();
    let next = now + by; // the next red column, if any is red
    while (total.bad && next >= 0 && next < total.all && !isRed(next)) next += by;
    if (next >= 0 && next < total.all) aims(next);
  };
  const all = figure(total.all), bad = figure(total.bad);
  const [wrong, near] = total.bad
    ? [say(`${bad} end wrong: red.`, `其中 ${bad} 种以出错告终，终点是红色。`),
      say(" A press near a red column plays the red one.", "；按在红列旁边，播放的是红列")]
    : [say("None is wrong.", "没有一种出错。"), ""];
  at("counts").textContent = say(
    `${all} interleavings, each played by the lock's real code on a real server: a column each, from the first choice at the top to the last. ${wrong} ` +
      `${played ? "Blue is your path. " : ""}Press a column to see it played.${near}`,
    `${all} 种交错次序，每种都用锁的真实代码在真实的服务器上走过；每种一列，从上到下是第一次到最后一次选择。${wrong}${played ? "蓝色是你的路径。" : ""}按一列，就播放那一列${near}。`);
}

// ---- The address ----

// spells writes choices as an address does.
function spells(choices) { return choices.map((m) => nameOf(m.client) + CODES[m.deed]).join(""); }
// spelled returns the choices that an address spells.
function spelled(code) {
  const whole = [];
  for (const [, who, deed] of code.matchAll(/([A-D])([purlcxg])/g)) {
    const m = game.moves(whole.at(-1)?.to ?? 0).find((m) => nameOf(m.client) === who && CODES[m.deed] === deed);
    if (!m) break;
    whole.push(m);
  }
  return whole;
}

function enter(key, code = "") {
  halt();
  level = data.levels.find((l) => l.key === key) ?? data.levels[0];
  game = games[level.key];
  path = []; played = 0; menu = ""; shown = null; hasGivenUp = false;
  at("give").open = false;
  at("link").textContent = say("Copy link", "复制链接");
  const whole = spelled(code);
  show();
  if (whole.length) replay(whole, LINK);
}
// The reader's own run, at a reload or in the other language, is no link: it is there again at once.
const kept = () => { try { return sessionStorage.zklockNetwork; } catch { return ""; } };
const keep = (place) => { try { sessionStorage.zklockNetwork = place; } catch { /* not kept */ } };
const byAddress = () => {
  const [key, code] = location.hash.slice(1).split("/"), isMine = kept() === location.hash;
  enter(key, isMine ? "" : code);
  if (!isMine) return;
  path = spelled(code);
  scrub(path.length);
};

at("levels").append(...data.levels.map((l) => {
  const b = Object.assign(document.createElement("button"), { type: "button", onclick: () => enter(l.key) });
  b.dataset.key = l.key;
  return b;
}));
addEventListener("language", () => level && show());
if (at("other")) { // a page of the book has one language
  speak(document.documentElement.dataset.language === "en" ? "en" : "zh");
  at("other").onclick = () => { at("other").hash = location.hash; };
} else {
  chooseLanguage(at("language"));
}
addEventListener("hashchange", byAddress);
addEventListener("resize", () => isBusy || show(document.activeElement.dataset.key));
byAddress();
