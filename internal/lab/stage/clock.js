// The clock of a replay: it slows recorded microseconds down, and cuts idle times short. Every page
// that plays a recorded story uses it.

// ready prepares a story for drawing.
function ready(story) {
  story.watches = story.watches.map(watch);
  story.frames = story.frames.map(frame);
  story.awake = awakenings(story);
  story.writes = (story.writes ?? []).map((w) => ({ ...w, from: w.at, to: w.at + 600 }));
  story.stored = story.writes.length > 0;
}

const REST = 1500; // milliseconds after each phase, for reading its summary

// clock lays out the phases of the stories shown, in milliseconds of the show. All stories play in
// the same slow motion, so the shorter one waits for the longer.
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
    // recorded returns the moment of story i at a moment of the show.
    recorded(i, now) {
      const phase = phases[this.phaseAt(now)], bent = phase.bends[i];
      if (!bent) return stories[i].end;
      return bent.unbend((now - phase.at) / phase.slow);
    },
    // shown returns the moment of the show for a recorded moment of story i.
    shown(i, t) {
      const p = Math.max(0, stories[i].phases.findLastIndex((p) => p.at <= t));
      return phases[p].at + phases[p].bends[i].bent(t) * phases[p].slow;
    },
  };
}

// bend cuts the idle times of a phase short: the length of a gap of more than 0.3 ms grows only
// with its logarithm.
function bend(story, phase) {
  const inside = (t) => t > phase.at && t < phase.over;
  const times = new Set([phase.at, phase.over]);
  for (const f of story.frames) for (const t of [f.from, f.to]) if (inside(t)) times.add(t);
  for (const w of story.writes) for (const t of [w.from, w.to]) if (inside(t)) times.add(t);
  for (const n of story.nodes) for (const t of [n.from, n.to]) if (inside(t)) times.add(t);
  for (const c of story.clients) for (const m of c.states) if (inside(m.at)) times.add(m.at);
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
