// A strip is a story as lanes, from left to right: what each client believes, what the server says, and
// what the store has.

// STRIP is the room for the names of the lanes, which are shorter on a phone, the margin on the right,
// the height of the axis, and the least height of a lane whose text can be read.
const STRIP = { left: (canvas) => isShort(canvas) ? 46 : 96, right: 6, axis: 17, lane: 15 };
const isShort = (canvas) => canvas.clientWidth < 300;
const wide = (canvas) => canvas.clientWidth - STRIP.left(canvas) - STRIP.right;

// shareAt returns the place of a pointer on a strip, from 0 to 1.
const shareAt = (canvas, { offsetX }) => (offsetX - STRIP.left(canvas)) / wide(canvas);

// lanesOf returns how many lanes a story has: its clients, the server and, if it has a store, the tokens and the store.
const lanesOf = (story) => story.clients.length + (story.stored ? 3 : 1);
const stripHeight = (story) => STRIP.lane * lanesOf(story) + STRIP.axis;

// drawStrip draws a story on a canvas. x returns where a moment of the story is, from 0 to 1; at is the
// place of the hairline, and ticks are those of the reader's actions. The seconds count from the moment zero: the
// first action, if nothing else is said. With isHandle the hairline is the end of the first client's pause,
// to be dragged. breaks are the places at which time is left out. It returns what it has drawn.
function drawStrip(canvas, story, x, at, ticks, zero = (story.phases[1] ?? story.phases[0]).at, isHandle = false, breaks = []) {
  const { clientWidth: width, clientHeight: height } = canvas, ratio = devicePixelRatio || 1;
  const ink = canvas.getContext("2d");
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  ink.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue("--" + name).trim();
  const gutter = STRIP.left(canvas), room = wide(canvas);
  const lane = (height - STRIP.axis) / lanesOf(story), band = Math.min(14, lane * 0.72);
  const px = (t) => gutter + room * Math.min(1, Math.max(0, x(t))), py = (i) => lane * (i + 0.5);
  const named = (long, short) => isShort(canvas) ? short : long;
  const size = lane < 19 || isShort(canvas) ? 12 : 14;
  const write = (words, left, y, fill, weight = "400", align = "left") => {
    ink.font = `${weight} ${size}px system-ui, "DejaVu Sans", sans-serif`;
    ink.textAlign = align;
    ink.textBaseline = "middle";
    ink.fillStyle = fill;
    ink.fillText(words, left, y + 1);
  };
  const box = (from, to, i, fill) => {
    ink.fillStyle = fill;
    ink.fillRect(px(from), py(i) - band / 2, Math.max(1.5, px(to) - px(from)), band);
  };
  ink.fillStyle = color("line");
  for (const tick of ticks) ink.fillRect(gutter + room * tick, 0, 1, height - STRIP.axis);
  const { end } = story, server = story.clients.length;
  const drawn = { now: px(end), at: gutter + room * at, belief: [], both: [], pauses: [], sessions: [], left: [], wedges: [], says: [], stays: [], blocks: [], lost: [],
    writes: [], tokens: [], bounces: [], seconds: [], requests: [], over: [], breaks: breaks.map((share) => gutter + room * share) };

  // The axis. A moment after the end, or in a time that is left out, has no place of its own.
  const last = Math.ceil((end - zero) / 1e6) + 12; // a strip may be longer than its story
  for (let second = 0; second <= last; second++) {
    const t = zero + second * 1e6, left = px(t);
    const isLeftOut = x(t) === x(t - 1e5) || t > end && x(t) === x(end);
    const hasPlace = x(t) >= 0 && x(t) <= 1 && !isLeftOut;
    const isCut = drawn.breaks.some((at) => Math.abs(at - left) < 14);
    const isFree = !isCut && (!drawn.seconds.length || left - drawn.seconds.at(-1).left >= 26);
    if (!hasPlace || !isFree || left > width - 12) continue;
    drawn.seconds.push({ second, left });
    write(second ? String(second) : say("0 s", "0 秒"), left, height - STRIP.axis / 2, color("soft"), "400", "center");
  }

  // What each client believes. A pause is a gap, in which the time until the end of the session runs out.
  const hasReaders = story.clients.some((c) => c.states.some((s) => s.is === "reads")); // then a holder has its letter
  const spans = (c) => c.states.map((s, i) => ({ is: s.is, from: s.at, to: c.states[i + 1]?.at ?? end }));
  story.clients.forEach((c, i) => {
    ink.fillStyle = color("line");
    ink.fillRect(gutter, py(i), room, 1);
    ink.fillStyle = color("request"); // a tick for each request: a write is high
    for (const f of story.frames.filter((f) => f.client === i && f.kind === REQUEST)) {
      const high = WRITES.includes(f.op) ? band : band / 2;
      drawn.requests[i] = (drawn.requests[i] ?? 0) + 1;
      ink.fillRect(px(f.from), py(i) - high / 2, 1, high);
    }
    for (const s of spans(c)) {
      if (inside(s.is)) {
        drawn.belief.push(i);
        box(s.from, s.to, i, color("holder"));
        const letter = s.is === "reads" ? "R" : "W", isSeen = px(s.to) - px(s.from) > 14;
        if (hasReaders && isSeen) write(letter, (px(s.from) + px(s.to)) / 2, py(i), color("paper"), "700", "center");
      }
      if (s.is === "waits") { // hollow
        ink.strokeStyle = color("ink");
        ink.lineWidth = 1;
        ink.strokeRect(px(s.from) + 0.5, py(i) - 2.5, Math.max(1, px(s.to) - px(s.from) - 1), 5);
      }
      if (/^stopped/.test(s.is)) {
        drawn.pauses.push(i);
        ink.fillStyle = color("paper");
        ink.fillRect(px(s.from), py(i) - band / 2 + 3, px(s.to) - px(s.from), band - 6);
      }
    }
    for (const s of spans(c).filter((s) => /^(stopped|crashed)/.test(s.is))) { // a wedge: the session runs out, from the last message on
      const silent = c.beats?.findLast((t) => t <= s.from);
      if (silent === undefined || drawn.sessions.includes(i)) continue;
      drawn.sessions.push(i);
      const from = Math.max(silent, story.phases[0].at), over = Math.min(silent + story.session, end, c.beats.find((t) => t > silent) ?? end);
      const left = (t) => 1 - (t - silent) / story.session; // what has not run out
      const most = band - 6, bottom = py(i) + most / 2;
      drawn.left.push(left(over));
      drawn.wedges.push([px(from), px(over)]);
      ink.beginPath();
      ink.moveTo(px(from), bottom);
      ink.lineTo(px(from), bottom - most * left(from));
      ink.lineTo(px(over), bottom - most * left(over));
      ink.lineTo(px(over), bottom);
      ink.fillStyle = color("request");
      ink.fill();
    }
    for (const s of spans(c)) { // the signs are over it
      const from = px(s.from), isSeen = px(s.to) - from > 20;
      if (/^stopped/.test(s.is) && isSeen) {
        ink.fillStyle = color("paper");
        ink.fillRect(from, py(i) - band / 2 + 3, 19, band - 6);
        write("❚❚", from + 3, py(i), color("bad"));
      }
    }
    write(named(say(c.name), say(c.name).replace(/^(client|客户端) /, "")), 4, py(i), color("ink"));
  });

  write(named(say(`step ${story.step}`, `第 ${story.step} 步`), say(`step ${story.step}`, `第${story.step}步`)), 4, height - STRIP.axis / 2, color("soft"));

  for (const f of story.frames.filter((f) => f.lost && f.kind === REPLY)) {
    drawn.lost.push(f.client);
    lostReply(ink, { x: px(f.to), y: py(f.client) }, band * 0.55, color("paper"), color("bad"));
  }

  // Two that believe at once: hatched, unless both only read.
  const times = [...new Set(story.clients.flatMap((c) => c.states.map((s) => s.at)))].sort((a, b) => a - b);
  times.forEach((from, k) => {
    const believes = (is) => inside(is) && is !== "reads";
    const to = times[k + 1] ?? end, who = story.clients.flatMap((c, i) => believes(stateAt(c, from)) ? [i] : []);
    if (who.length < 2) return;
    drawn.both.push(who.join());
    for (const i of who) {
      ink.save();
      ink.beginPath();
      ink.rect(px(from), py(i) - band / 2, px(to) - px(from), band);
      ink.clip();
      ink.strokeStyle = color("bad");
      ink.lineWidth = 3;
      for (let left = px(from) - band; left < px(to); left += 8) {
        line(ink, { x: left, y: py(i) + band / 2 }, { x: left + band, y: py(i) - band / 2 });
      }
      ink.restore();
    }
  });

  // What the server says: the client whose znode is the first or, if readers are the first, all readers before a writer.
  write(named(say("server says", "服务器认为"), say("server", "服务器")), 4, py(server), color("ink"));
  const queue = (t) => story.nodes.filter((n) => there(n, t)).sort((m, n) => place(m) - place(n));
  const first = (t) => {
    const all = queue(t), others = all.findIndex((n) => !n.name.includes("__READ__"));
    return all.slice(0, others < 0 ? all.length : Math.max(1, others)).map((n) => n.owner).join(" ");
  };
  const changes = [...new Set(story.nodes.flatMap((n) => [n.from, n.to]).filter((t) => t >= 0))].sort((a, b) => a - b);
  const says = (from, to, fill, ...words) => { // the first of these words for which there is room
    box(from, to, server, color(fill));
    const cuts = [px(from), ...drawn.breaks.filter((left) => left > px(from) && left < px(to)), px(to)]; // no word crosses a gap
    const rooms = cuts.slice(1).map((right, k) => ({ left: cuts[k], right })).sort((a, b) => b.right - b.left - (a.right - a.left));
    const { left, right } = rooms[0];
    ink.font = `700 ${size}px system-ui, "DejaVu Sans", sans-serif`;
    const fits = words.find((w) => ink.measureText(w).width + 6 + (rooms.length > 1 ? 6 : 0) <= right - left);
    if (fits) write(fits, (left + right) / 2, py(server), color("paper"), "700", "center");
  };
  for (let k = 0; k < changes.length; k++) {
    const owners = first(changes[k]), from = changes[k];
    while (k + 1 < changes.length && first(changes[k + 1]) === owners) k++;
    if (!owners) continue;
    drawn.says.push(owners);
    const to = changes[k + 1] ?? end, owner = owners.split(" ")[0], { over } = story.clients[owner];
    const isLeft = story.znode && over > from && over < to; // its session has ended, and its znode is still there
    const alone = story.znode ? say(`client ${owner}'s znode`, `客户端 ${owner} 的 znode`) : say(`client ${owner} is first`, `客户端 ${owner} 排第一`);
    const blocks = !story.znode && stateAt(story.clients[owner], from) === "got an error"; // its owner does not know its znode
    if (blocks) {
      drawn.blocks.push(owner);
      says(from, to, "bad", say(`client ${owner}'s znode blocks`, `客户端 ${owner} 的 znode 挡住`), say("blocks", "挡住"), owner);
      continue;
    }
    says(from, isLeft ? over : to, "soft", ...(owner === owners ? [alone] : []), owners);
    if (!isLeft) continue;
    drawn.stays.push(owner);
    says(over, to, "bad", say(`still client ${owner}'s znode`, `仍是客户端 ${owner} 的 znode`), say("still there", "还在"), owner);
  }

  story.clients.forEach((c, i) => { // the end of a session, in the lanes of its client and of the server
    if (!(c.over > 0 && c.over < end)) return;
    drawn.over.push(i);
    ink.fillStyle = color("bad");
    for (const at of [i, server]) ink.fillRect(px(c.over) - 1, py(at) - lane / 2, 2, lane);
    const room = Math.min(px(end), ...drawn.breaks.filter((left) => left > px(c.over))) - px(c.over);
    const isRoom = room >= 90 && c.states.at(-1).is === "crashed";
    if (isRoom) write(say("session ends", "会话结束"), px(c.over) + 4, py(i), color("bad"));
  });

  // The store: whose value it has. A refused write bounces off. The lane above it has the token of each write.
  if (story.stored) {
    const i = server + 2, top = py(i) - band / 2;
    write(say("token", "令牌"), 4, py(i - 1), color("ink"));
    write(named(say("the store", "存储"), say("store", "存储")), 4, py(i), color("ink"));
    const taken = story.writes.filter((w) => w.ok);
    taken.forEach((w, k) => {
      box(w.from, taken[k + 1]?.from ?? end, i, color(w.late ? "bad" : "reply"));
      const from = px(w.from), to = px(taken[k + 1]?.from ?? end);
      if (to - from > 14) write(String(w.client), (from + to) / 2, py(i), color("paper"), "700", "center");
    });
    for (const w of story.writes) {
      drawn.writes.push(`${w.client} ${w.ok ? w.late ? "late" : "accepted" : "refused"}`);
      ink.strokeStyle = color(w.late ? "bad" : "request");
      ink.lineWidth = 2;
      line(ink, { x: px(w.from), y: py(w.client) }, { x: px(w.from), y: top - (w.ok ? 0 : 2) });
      if (w.ok) arrowhead(ink, { x: px(w.from), y: top - 6 }, { x: px(w.from), y: top }, 6);
    }
    ink.font = `700 ${size}px system-ui, "DejaVu Sans", sans-serif`;
    drawn.tokens = story.writes.map((w) => {
      const words = w.token ? tokenName(w.token) : say("none", "无"), width = ink.measureText(words).width + 6;
      const fill = color(!w.token ? "soft" : w.late ? "bad" : "request");
      return { words, size: width, left: px(w.from) - width / 2, fill, isRefused: !w.ok };
    });
    const { tokens } = drawn; // side by side, and within the strip
    tokens.forEach((token, k) => {
      token.left = Math.max(token.left, k ? tokens[k - 1].left + tokens[k - 1].size + 2 : gutter);
    });
    tokens.toReversed().forEach((token, k, all) => {
      token.left = Math.min(token.left, (k ? all[k - 1].left - 2 : width) - token.size);
    });
  }

  for (const left of drawn.breaks) { // a gap, with two strokes at the axis
    ink.fillStyle = color("paper");
    ink.fillRect(left - 3, 0, 6, height);
    ink.strokeStyle = color("ink");
    ink.lineWidth = 1.5;
    for (const side of [-3, 3]) line(ink, { x: left + side - 3, y: height - 2 }, { x: left + side + 3, y: height - STRIP.axis + 1 });
  }

  story.clients.forEach((c, i) => { // a crash is the first thing after a gap
    for (const s of c.states.filter((s) => s.is === "crashed")) cross(ink, { x: px(s.at), y: py(i) }, band, color("bad"));
  });

  ink.fillStyle = color("ink");
  ink.fillRect(drawn.at, 0, 1.5, height - STRIP.axis);
  if (isHandle) {
    const middle = { x: drawn.at + 0.75, y: py(0) };
    ink.beginPath();
    ink.roundRect(middle.x - 16, middle.y - 7, 32, 14, 7);
    ink.fillStyle = color("paper");
    ink.fill();
    ink.strokeStyle = ink.fillStyle = color("notification");
    ink.lineWidth = 2;
    ink.stroke();
    for (const side of [-1, 1]) arrowhead(ink, middle, { x: middle.x + side * 12, y: middle.y }, 9);
  }
  if (story.stored) story.writes.forEach((w, k) => { // a refused write bounces off, past its token
    if (w.ok) return;
    const from = { x: px(w.from), y: py(server + 2) - band / 2 - 1 }, token = drawn.tokens[k];
    const isAtTheEnd = token.left + token.size + 14 > width, away = isAtTheEnd ? token.left - 12 : token.left + token.size + 12;
    const to = { x: away, y: py(server + 1) - lane * 0.3 };
    ink.strokeStyle = ink.fillStyle = color("bad");
    ink.lineWidth = 2;
    line(ink, from, to);
    arrowhead(ink, from, to, 8);
    drawn.bounces.push(w.client);
  });
  for (const { words, size, left, fill, isRefused } of drawn.tokens) { // over the hairline, so that they can be read
    ink.fillStyle = isRefused ? color("paper") : fill;
    ink.fillRect(left, py(server + 1) - lane / 2 + 1, size, lane - 2);
    ink.strokeStyle = fill;
    ink.lineWidth = 1.5;
    ink.strokeRect(left + 0.75, py(server + 1) - lane / 2 + 1.75, size - 1.5, lane - 3.5);
    write(words, left + size / 2, py(server + 1), isRefused ? fill : color("paper"), "700", "center");
  }
  return drawn;
}
