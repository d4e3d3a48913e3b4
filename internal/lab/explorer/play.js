// A game has the points of one lock, as game.go has written them. A point is [state, end, choice, came, to, …].
class Game {
  constructor(data) { this.data = data; }
  moves(point) {
    const p = this.data.points[point], moves = [];
    for (let k = 2; k < p.length; k += 3) {
      const [client, deed, op, on] = this.data.choices[p[k]];
      moves.push({ choice: p[k], came: this.data.cames[p[k + 1]], to: p[k + 2], client, deed, op, on, sets: this.stand(point, client).sets });
    }
    return moves;
  }
  end(point) {
    const end = this.data.points[point][1];
    if (end < 0) return null;
    const [wrong, says] = this.data.ends[end];
    return { wrong, says };
  }
  // ways counts the interleavings that go on from a point, how many of them end wrong, and the choices of the longest.
  ways(point) {
    this.known ??= [];
    return this.known[point] ??= this.counts(point);
  }
  counts(point) {
    const next = this.moves(point).map((m) => this.ways(m.to));
    if (!next.length) return { all: 1, bad: this.end(point)?.wrong.length ? 1 : 0, deep: 0 };
    const sum = { all: 0, bad: 0, deep: 0 };
    for (const { all, bad, deep } of next) {
      sum.all += all;
      sum.bad += bad;
      sum.deep = Math.max(sum.deep, deep + 1);
    }
    return sum;
  }
  stand(point, client) {
    const [state, op, on, sets, gaveUp, expired, watches] = this.data.stands[this.data.states[this.data.points[point][0]][client]];
    return { state, op, on, sets, gaveUp, expired, watches };
  }
  // isServed reports whether the queue says that it is a client's turn: its znode is the first. A reader's need not be.
  isServed(point, client) {
    const [first, ...others] = this.znodes(point);
    return first?.owner === client || this.stand(point, client).state === "reads" && others.some((z) => z.owner === client);
  }
  znodes(point) {
    return this.data.znodes[this.data.states[this.data.points[point][0]].at(-1)].map(([name, owner]) => ({ name, owner }));
  }
}

const isFault = (m) => m.deed !== "pass" && m.deed !== "unlock";
const faultOf = (moves) => moves.filter(isFault).map((m) => m.deed.startsWith("lose") ? `${m.deed} ${m.op}` : m.deed).join(", ");
const READS = ["exists", "getData", "getChildren", "sync"];

// ahead returns the requests of a client that pass until good(point) is true, or null. Only reads pass, unless all is set.
function ahead(game, point, client, good, all = false) {
  const moves = [];
  while (!good(point)) {
    const m = game.moves(point).find((m) => m.client === client && m.deed === "pass" && (all || READS.includes(m.op)));
    if (!m || moves.length === 8) return null;
    moves.push(m);
    point = m.to;
  }
  return moves;
}

// answer plays a choice of one lock on another lock. Writes, calls and faults are matched one to one. A client's reads are
// each lock's own affair: they follow by themselves. If the other lock has nothing like the choice, nothing happens.
function answer(first, m, second, point) {
  const c = m.client, moves = [];
  const now = () => moves.at(-1)?.to ?? point;
  const isSame = (x) => x.client === c && x.deed === m.deed && x.op === m.op;
  const before = ahead(second, point, c, (i) => second.moves(i).some(isSame));
  if (before) {
    moves.push(...before);
    moves.push(second.moves(now()).find(isSame));
  } else if (m.deed !== "unlock") {
    const isLoss = m.deed.startsWith("lose"), bothRead = READS.includes(m.op) && READS.includes(second.stand(point, c).op);
    const isLike = (x) => x.client === c && (isLoss ? x.deed.startsWith("lose") : x.deed === m.deed);
    const like = m.deed === "pass" && !bothRead ? null : second.moves(now()).find(isLike);
    if (like) moves.push(like);
  }
  // Then it comes to where it stands with the first lock, or to its end.
  const want = first.stand(m.to, c), isThrough = !want.op && !["waits", "holds", "reads", "releases", "crashed"].includes(want.state);
  const isThere = (i) => second.stand(i, c).op === want.op && (isThrough || second.stand(i, c).state === want.state);
  moves.push(...ahead(second, now(), c, isThere, isThrough) ?? []);
  return moves;
}

// rest plays on without a fault to the end.
function rest(game, point) {
  const moves = [];
  for (let m; (m = game.moves(point).find((m) => !isFault(m))) && moves.length < 100; point = m.to) moves.push(m);
  return moves;
}

// beside plays all choices of one lock on another lock.
function beside(first, path, second) {
  let point = 0;
  return path.map((m) => {
    const moves = answer(first, m, second, point);
    point = moves.at(-1)?.to ?? point;
    return { moves, to: point };
  });
}

// arrives returns the point to which choices lead from the beginning, or -1 if they cannot be made.
function arrives(game, path) {
  return path.reduce((point, m) => point < 0 ? -1 : game.moves(point).find((n) => n.choice === m.choice)?.to ?? -1, 0);
}

// wrongBeside returns what the choices made with one lock break with another, when it plays on to its end.
function wrongBeside(game, path, other) {
  const now = beside(game, path, other).at(-1).to;
  return other.end(rest(other, now).at(-1)?.to ?? now).wrong;
}

// reaches reports whether a path has come to a goal. If a goal names faults, others count where the other lock is right;
// but if this lock has to mend what the other one breaks, only these faults count.
function reaches(goal, game, path, other) {
  const end = game.end(path.at(-1)?.to ?? 0), faults = faultOf(path);
  if (goal.mends) return Boolean(end) && !end.wrong.length && goal.faults.includes(faults) && wrongBeside(game, path, other).includes(goal.kind);
  if (!end?.wrong.includes(goal.kind)) return false;
  const isAsked = !goal.faults || goal.faults.includes(faults) || goal.faults[0] !== "" && other && !wrongBeside(game, path, other).length;
  return Boolean(isAsked) && arrives(game, path) === path.at(-1).to;
}

// byStory compares two paths: the one that is easier to follow comes first. In it the fault comes late, so that all goes well
// until then, and one client goes on as long as it can.
function byStory(a, b) {
  const fault = (path) => path.findIndex(isFault);
  const switches = (path) => path.filter((m, k) => k > 0 && m.client !== path[k - 1].client).length;
  return fault(b) - fault(a) || switches(a) - switches(b);
}

// shortest returns a path to a goal with the fewest choices, among those that begin in the same way; or null. Of several
// such paths, it is one with the fault that the goal names, and the one that is easiest to follow.
function shortest(goal, game, coins, other, begin = []) {
  let paths = [begin];
  const seen = new Set();
  while (paths.length) {
    const won = paths.filter((p) => reaches(goal, game, p, other));
    if (won.length) return won.find((p) => goal.faults?.includes(faultOf(p))) ?? won[0];
    paths = paths.flatMap((p) => game.moves(p.at(-1)?.to ?? 0).map((m) => [...p, m])).sort(byStory).filter((p) => {
      const faults = p.filter(isFault), key = `${p.at(-1).to} ${faults.map((m) => m.choice)}`;
      if (seen.has(key) || faults.length > coins) return false;
      return seen.add(key);
    });
  }
  return null;
}
