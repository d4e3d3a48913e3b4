// The clock of a replay: it slows recorded microseconds down, and cuts idle times short. Every page
// that plays a recorded story uses it.

// ready prepares a story for drawing. A write to the store flies for so many microseconds: long ones, where the show is not
// slower than the record.
function ready(story, flight = 600) {
  story.watches = story.watches.map(watch);
  story.frames = story.frames.map(frame);
  story.awake = awakenings(story);
  story.writes = (story.writes ?? []).map((w) => ({ ...w, from: w.at, to: w.at + flight }));
  story.stored = story.writes.length > 0;
}

const REST = 1500; // milliseconds after each phase, for reading its summary

// clock lays out the phases of the stories shown, in milliseconds of the show. A moment of the show is, in each story,
// as long after the beginning of the phase: a second is as wide in one strip as in the other. With isEven
// the show takes as long as the record, and at least so many milliseconds; only the time between the phases
// is left out.
function clock(stories, isEven = false, least = 0) {
  const phases = [];
  let at = 0;
  for (let p = 0; p < Math.max(...stories.map((s) => s.phases.length)); p++) {
    const times = bend(stories.filter((s) => s.phases[p]), p, isEven), { length } = times;
    const lasts = isEven ? length / 1000 : Math.min(12000, Math.max(3000, length * 2.5));
    phases.push({ at, lasts, times, slow: lasts / length });
    at += lasts + (isEven ? 0 : REST);
  }
  const shownIn = (p, t) => phases[p].at + phases[p].times.bent(t) * phases[p].slow;
  return {
    phases, length: isEven ? Math.max(least, at * 1.04) : at,
    phaseAt: (now) => Math.max(0, phases.findLastIndex((p) => p.at <= now)),
    // recorded returns the moment of story i at a moment of the show.
    recorded(i, now) {
      const p = this.phaseAt(now), of = stories[i].phases[p];
      if (!of) return stories[i].end;
      return Math.min(of.over, of.at + phases[p].times.unbend((now - phases[p].at) / phases[p].slow));
    },
    // shown returns the moment of the show for a recorded moment of story i.
    shown(i, t) {
      const p = Math.max(0, stories[i].phases.findLastIndex((p) => p.at <= t));
      return shownIn(p, t - stories[i].phases[p].at);
    },
    // over returns the moment of the show, to the millisecond, from which on a phase of story i is over.
    over(i, p) {
      const of = stories[i].phases[p];
      return of ? shownIn(p, of.over - of.at) - 1 : phases[p].at + phases[p].lasts;
    },
  };
}

// bend cuts the idle times of a phase short: the length of a gap of more than 0.3 ms, in which nothing
// happens in any of the stories, grows only with its logarithm. With isEven it cuts nothing.
function bend(stories, p, isEven) {
  const times = new Set([0]);
  for (const story of stories) {
    const phase = story.phases[p];
    const has = (t) => { if (t > phase.at && t < phase.over && !isEven) times.add(t - phase.at); };
    times.add(Math.max(1, phase.over - phase.at));
    for (const x of [...story.frames, ...story.writes, ...story.nodes]) [x.from, x.to].forEach(has);
    for (const c of story.clients) for (const m of c.states) has(m.at);
  }
  const t = [...times].sort((a, b) => a - b), b = [0];
  for (let i = 1; i < t.length; i++) {
    const gap = t[i] - t[i - 1];
    b.push(b[i - 1] + (gap <= 300 || isEven ? gap : 300 + 120 * Math.log2(gap / 300)));
  }
  const through = (x, xs, ys) => {
    if (x >= xs.at(-1)) return ys.at(-1);
    const i = Math.max(1, xs.findIndex((v) => v > x)), share = (x - xs[i - 1]) / (xs[i] - xs[i - 1] || 1);
    return ys[i - 1] + Math.max(0, share) * (ys[i] - ys[i - 1]);
  };
  return { length: b.at(-1), unbend: (x) => through(x, b, t), bent: (x) => through(x, t, b) };
}
