// A strip is a story as lanes, from left to right: what each client believes, what the server says, and
// what the store has.

// STRIP is the room for the names of the lanes, and the margin on the right.
const STRIP = { left: 84, right: 6 };

// drawStrip draws a story on a canvas. x returns where a moment of the story is, from 0 to 1; at is the
// place of the hairline, and ticks are those of the reader's actions. It returns what it has drawn.
function drawStrip(canvas, story, x, at, ticks) {
  const { clientWidth: width, clientHeight: height } = canvas, ratio = devicePixelRatio || 1, ink = canvas.getContext("2d");
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  ink.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement), color = (name) => style.getPropertyValue("--" + name).trim();
  const { left: gutter, right } = STRIP, lanes = story.clients.length + 1 + (story.stored ? 1 : 0), lane = (height - 4) / lanes, band = Math.min(14, lane * 0.62);
  const px = (t) => gutter + (width - gutter - right) * Math.min(1, Math.max(0, x(t))), py = (i) => 2 + lane * (i + 0.5);
  const write = (words, left, y, fill, weight = "400", align = "left") => {
    ink.font = `${weight} ${Math.min(12, lane * 0.8)}px system-ui, "DejaVu Sans", sans-serif`;
    ink.textAlign = align;
    ink.textBaseline = "middle";
    ink.fillStyle = fill;
    ink.fillText(words, left, y + 1);
  };
  const box = (from, to, i, fill) => { ink.fillStyle = fill; ink.fillRect(px(from), py(i) - band / 2, Math.max(1.5, px(to) - px(from)), band); };
  ink.fillStyle = color("line");
  for (const tick of ticks) ink.fillRect(gutter + (width - gutter - right) * tick, 0, 1, height);
  const { end } = story, server = story.clients.length, drawn = { now: px(end), belief: [], both: [], pauses: [], sessions: [], says: [], lost: [], writes: [] };

  // What each client believes. A pause is a gap, in which the time until the end of the session runs out.
  const spans = (c) => c.states.map((s, i) => ({ is: s.is, from: s.at, to: c.states[i + 1]?.at ?? end }));
  story.clients.forEach((c, i) => {
    ink.fillStyle = color("line");
    ink.fillRect(gutter, py(i), width - gutter - right, 1);
    for (const s of spans(c)) {
      if (inside(s.is)) {
        drawn.belief.push(i);
        box(s.from, s.to, i, color("holder"));
      }
      if (/^stopped/.test(s.is)) {
        drawn.pauses.push(i);
        ink.fillStyle = color("paper");
        ink.fillRect(px(s.from), py(i) - band / 2 + 3, px(s.to) - px(s.from), band - 6);
        if (px(s.to) - px(s.from) > 14) write("❚❚", px(s.from) + 4, py(i), color("bad"));
      }
      if (s.is === "crashed") cross(ink, { x: px(s.from), y: py(i) }, band, color("bad"));
    }
    for (const s of spans(c).filter((s) => /^(stopped|crashed)/.test(s.is))) { // a wedge: the session runs out
      const silent = c.beats?.findLast((t) => t <= s.from);
      if (silent === undefined || drawn.sessions.includes(i)) continue;
      drawn.sessions.push(i);
      ink.beginPath();
      ink.moveTo(px(silent), py(i) + band / 2 + 1);
      ink.lineTo(px(silent), py(i) + band / 2 + 5);
      ink.lineTo(px(silent + story.session), py(i) + band / 2 + 1);
      ink.fillStyle = color("request");
      ink.fill();
    }
    write(say(c.name), 4, py(i), color("ink"));
  });

  for (const f of story.frames.filter((f) => f.lost && f.kind === REPLY)) {
    drawn.lost.push(f.client);
    cross(ink, { x: px(f.to), y: py(f.client) }, band * 0.8, color("bad"));
  }

  // Two that believe at once: hatched.
  const times = [...new Set(story.clients.flatMap((c) => c.states.map((s) => s.at)))].sort((a, b) => a - b);
  times.forEach((from, k) => {
    const to = times[k + 1] ?? end, who = story.clients.flatMap((c, i) => { const is = stateAt(c, from); return inside(is) && is !== "reads" ? [i] : []; });
    if (who.length < 2) return;
    drawn.both.push(who.join());
    for (const i of who) {
      ink.save();
      ink.beginPath();
      ink.rect(px(from), py(i) - band / 2, px(to) - px(from), band);
      ink.clip();
      ink.strokeStyle = color("bad");
      ink.lineWidth = 3;
      for (let left = px(from) - band; left < px(to); left += 8) line(ink, { x: left, y: py(i) + band / 2 }, { x: left + band, y: py(i) - band / 2 });
      ink.restore();
    }
  });

  // What the server says: the client whose znode is the first.
  write(say("server says", "服务器认为"), 4, py(server), color("ink"));
  const first = (t) => story.nodes.filter((n) => there(n, t)).sort((m, n) => (m.name.match(/\d+$/)?.[0] ?? 0) - (n.name.match(/\d+$/)?.[0] ?? 0))[0]?.owner ?? -1;
  const changes = [...new Set(story.nodes.flatMap((n) => [n.from, n.to]).filter((t) => t >= 0))].sort((a, b) => a - b);
  for (let k = 0; k < changes.length; k++) {
    const owner = first(changes[k]), from = changes[k];
    while (k + 1 < changes.length && first(changes[k + 1]) === owner) k++;
    if (owner < 0) continue;
    const to = changes[k + 1] ?? end;
    drawn.says.push(owner);
    box(from, to, server, color("soft"));
    if (px(to) - px(from) > 14) write(String(owner), (px(from) + px(to)) / 2, py(server), color("paper"), "700", "center");
  }

  // The store: whose value it has. A refused write bounces off.
  if (story.stored) {
    const i = server + 1, top = py(i) - band / 2;
    write(say("the store", "存储"), 4, py(i), color("ink"));
    const taken = story.writes.filter((w) => w.ok);
    taken.forEach((w, k) => {
      box(w.to, taken[k + 1]?.to ?? end, i, color(w.late ? "bad" : "reply"));
      const from = px(w.to), to = px(taken[k + 1]?.to ?? end);
      if (to - from > 14) write(String(w.client), (from + to) / 2, py(i), color("paper"), "700", "center");
    });
    for (const w of story.writes) {
      drawn.writes.push(`${w.client} ${w.ok ? w.late ? "late" : "accepted" : "refused"}`);
      ink.strokeStyle = color(w.late ? "bad" : "request");
      ink.lineWidth = 2;
      line(ink, { x: px(w.from), y: py(w.client) }, { x: px(w.from), y: top - (w.ok ? 0 : 3) });
      if (!w.ok) cross(ink, { x: px(w.from), y: top - 3 }, 7, color("bad"));
      else arrowhead(ink, { x: px(w.from), y: top - 6 }, { x: px(w.from), y: top }, 6);
      const isWide = width > 260; // else two tokens would overlap
      if (!w.token || !isWide) continue;
      ink.font = `700 ${Math.min(12, lane * 0.8)}px system-ui, "DejaVu Sans", sans-serif`;
      const words = tokenName(w.token), half = ink.measureText(words).width / 2 + 3;
      ink.fillStyle = color(w.late ? "bad" : "request");
      ink.fillRect(px(w.from) - half, top - lane * 0.72, 2 * half, lane * 0.6);
      write(words, px(w.from), top - lane * 0.42, color("paper"), "700", "center");
    }
  }

  ink.fillStyle = color("ink");
  ink.fillRect(gutter + (width - gutter - right) * at, 0, 1.5, height);
  return drawn;
}
