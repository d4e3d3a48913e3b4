// A crowd waits, and one release is shown in step 3 and beside it in step 4: each waiter is a dot, which
// lights up when the server notifies it. First the reader draws how the bytes grow with the crowd.

// showHerd builds all of it in root. crowds are those that were recorded, the smallest first. It returns
// what the page needs: add shows another crowd, isSeen reports whether the reader has drawn his line. It
// calls told when he has. While isLarge is true, the chart in which he draws is large.
function showHerd(root, crowds, told = () => {}, isLarge = () => false) {
  const NAMES = [text("Step 3", "第 3 步"), text("Step 4", "第 4 步")], COLOURS = ["notification", "request"];
  const SHOWN = 3000; // milliseconds that the slower of two releases is shown
  const EDGE = 4; // pixels around a field, for the ring
  const largest = crowds.at(-1).waiters, drawn = crowds.map((_, i) => i === 0 ? crowds[0].releases[0].bytes : 0); // the reader's line; 0: not drawn
  const own = new Set(); // the columns at which he has set a point
  const number = (n) => n.toLocaleString("en");
  const notified = ({ told }) => told.filter((at) => at >= 0).length;
  let seen = false, crowd = crowds.at(-1), at = 0, runs = 0;

  const element = (tag, properties, ...children) => { const e = Object.assign(document.createElement(tag), properties); e.append(...children); return e; };
  const ask = element("p", { className: "herd-ask" }), answer = element("p", { className: "herd-answer" }), chart = element("div", { className: "herd-chart" });
  const reveal = element("button", { type: "button", className: "herd-reveal" }), unsure = element("button", { type: "button" });
  const sizes = element("div", { className: "herd-sizes" });
  const fields = NAMES.map((_, at) => {
    const title = element("b"), canvas = element("canvas"), bar = element("span", { className: "herd-bar" }, element("i")), counts = element("p");
    canvas.setAttribute("role", "img");
    bar.firstChild.style.background = `var(--${COLOURS[at]})`;
    return { title, canvas, bar: bar.firstChild, counts, root: element("div", { className: "herd-field" }, title, canvas, bar, counts) };
  });
  const both = element("div", { className: "herd-fields" }, ...fields.map((f) => f.root));
  const all = element("p", { className: "herd-all" });
  all.setAttribute("role", "status");
  root.replaceChildren(ask, both, all, sizes, element("div", { className: "herd-guess" }, chart, element("div", {}, reveal, " ", unsure, answer)));

  // ---- The chart, on two logarithmic axes ----

  // Of the three charts, the first two stand beside their text.
  const SMALL = { box: [-12, 0, 336, 172], X: [46, 300], Y: [150, 10] }, WIDE = { box: [0, 0, 620, 190], X: [62, 590], Y: [164, 12] }, LARGE = { box: [0, 0, 880, 470], X: [92, 840], Y: [400, 16] };
  const size = () => !isLarge() ? SMALL : seen ? WIDE : LARGE;
  const least = 2, most = 8; // powers of ten on the y axis
  const x = (n) => {
    const { X } = size();
    return X[0] + (X[1] - X[0]) * Math.log(n / crowds[0].waiters) / Math.log(largest / crowds[0].waiters);
  };
  const y = (bytes) => {
    const { Y } = size();
    return Y[0] + (Y[1] - Y[0]) * (Math.log10(Math.max(100, bytes)) - least) / (most - least);
  };
  const bytesAt = (at) => {
    const { Y } = size();
    return Math.round(10 ** (least + (most - least) * (at - Y[0]) / (Y[1] - Y[0])));
  };
  const UNITS = { 2: "100 B", 4: "10 kB", 6: "1 MB", 8: "100 MB" };

  function plot() {
    const { box, X, Y } = size(), isWide = size() === LARGE;
    const line = (points, style) => points.length ? `<polyline fill="none" ${style} points="${points.map(([n, bytes]) => `${x(n)},${y(bytes)}`).join(" ")}"/>` : "";
    const mine = crowds.map((c, i) => [c.waiters, drawn[i]]).filter(([, bytes]) => bytes > 0);
    const measured = [...crowds, ...(crowds.includes(crowd) ? [] : [crowd])].sort((a, b) => a.waiters - b.waiters).filter((c) => c.waiters >= crowds[0].waiters);
    const marks = Object.entries(UNITS).map(([p, words]) => `<text x="${X[0] - 4}" y="${y(10 ** p) + 4}" text-anchor="end">${words}</text><path d="M${X[0]} ${y(10 ** p)}H${X[1]}"/>`).join("");
    const columns = crowds.map((c, i) => `<path d="M${x(c.waiters)} ${Y[1]}V${Y[0]}"/><text x="${x(c.waiters)}" y="${Y[0] + (isWide ? 22 : 15)}" text-anchor="middle">${number(c.waiters)}</text>`
      + (i && !seen ? `<circle class="handle" data-column="${i}" tabindex="0" role="slider" aria-valuemin="100" aria-valuemax="100000000" aria-valuenow="${drawn[i]}"
        aria-label="${say(`bytes with ${c.waiters} waiting`, `${c.waiters} 个在等时的字节数`)}" cx="${x(c.waiters)}" cy="${y(drawn[i] || drawn[0])}" r="${isWide ? 10 : 6}"/>` : "")).join("");
    const lines = seen && at >= end() ? NAMES.map((name, i) => line(measured.map((c) => [c.waiters, c.releases[i].bytes]), `stroke="var(--${COLOURS[i]})" stroke-width="2.5"`)
      + measured.map((c) => `<circle r="3.5" fill="var(--${COLOURS[i]})" cx="${x(c.waiters)}" cy="${y(c.releases[i].bytes)}"/>`).join("")
      + `<text x="${X[1] - 4}" y="${y(crowds.at(-1).releases[i].bytes) - 8}" text-anchor="end" style="fill:var(--${COLOURS[i]})">${say(name)}</text>`).join("") : "";
    const middle = Math.floor(crowds.length / 2); // where the reader's own line is named
    const you = seen && mine.length > 1 ? `<text x="${x(crowds[middle].waiters) + 4}" y="${y(drawn[middle]) + 14}">${say("you", "你")}</text>` : "";
    const titles = !isWide ? "" : `<text x="${(X[0] + X[1]) / 2}" y="${Y[0] + 50}" text-anchor="middle">${say("clients waiting", "等待的客户端")}</text>`
      + `<text transform="translate(18 ${(Y[0] + Y[1]) / 2}) rotate(-90)" text-anchor="middle">${say("bytes per release", "每次释放的字节数")}</text>`;
    const focus = chart.contains(document.activeElement) ? document.activeElement.dataset.column : null;
    chart.innerHTML = `<svg viewBox="${box.join(" ")}" role="group" aria-label="${say("bytes for one release, by the clients that wait", "一次释放的字节数，随等待的客户端数而变化")}">${marks}${columns}${titles}`
      + `<circle r="4" fill="var(--${COLOURS[0]})" cx="${x(crowds[0].waiters)}" cy="${y(crowds[0].releases[0].bytes)}"/>`
      + line(mine.length > 1 ? mine : [], `class="mine" stroke="var(--ink)" stroke-width="2" stroke-dasharray="5 4"`) + you + lines + "</svg>";
    if (focus) chart.querySelector(`[data-column="${focus}"]`)?.focus();
  }

  // draws sets the reader's line at a column. The columns before it that have no point yet get one on the way.
  function draws(i, bytes) {
    if (seen || i < 1) return;
    drawn[i] = Math.min(10 ** most, Math.max(10 ** least, bytes));
    own.add(i);
    const last = Math.max(...own), width = (from, to) => Math.log(crowds[to].waiters / crowds[from].waiters);
    for (let j = 1; j < last; j++) {
      if (own.has(j)) continue;
      const before = j - 1, after = crowds.findIndex((_, k) => k > j && own.has(k));
      drawn[j] = Math.round(drawn[before] * (drawn[after] / drawn[before]) ** (width(before, j) / width(before, after)));
    }
    write();
  }
  function point(e) {
    if (e.buttons !== 1 || seen) return;
    const place = chart.firstChild.getBoundingClientRect(), { box: [left, , width, height], Y } = size();
    const px = (e.clientX - place.x) * width / place.width + left, py = (e.clientY - place.y) * height / place.height;
    const near = crowds.map((c, i) => [Math.abs(x(c.waiters) - px), i]).sort((a, b) => a[0] - b[0])[0][1];
    draws(near, bytesAt(Math.min(Y[0], Math.max(Y[1], py))));
  }
  chart.onpointerdown = chart.onpointermove = point;
  chart.onkeydown = (e) => {
    const by = { ArrowUp: 2, ArrowDown: 0.5 }[e.key], i = Number(e.target.dataset?.column);
    if (!by || !i) return;
    e.preventDefault();
    e.stopPropagation();
    draws(i, Math.round((drawn[i] || drawn[0]) * by));
  };

  // ---- The fields ----

  // grid returns how many dots are in a row, so that all of them fill a canvas of this size.
  const grid = (n, width, height) => Math.max(1, Math.round(Math.sqrt(n * width / height)));

  function paint() {
    const style = getComputedStyle(document.documentElement), color = (name) => style.getPropertyValue("--" + name).trim();
    const most = Math.max(...crowd.releases.map((r) => r.bytes));
    crowd.releases.forEach((r, i) => {
      const { canvas, bar } = fields[i], { width, height } = canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1, ink = canvas.getContext("2d");
      if (!width) return;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      ink.scale(ratio, ratio);
      const columns = grid(crowd.waiters, width - 2 * EDGE, height - 2 * EDGE), rows = Math.ceil(crowd.waiters / columns);
      const pitch = Math.min((width - 2 * EDGE) / columns, (height - 2 * EDGE) / rows), radius = Math.min(9, pitch * 0.36);
      const place = (j) => [EDGE + (j % columns + 0.5) * pitch, EDGE + (Math.floor(j / columns) + 0.5) * pitch];
      r.told.forEach((moment, j) => {
        const isTold = moment >= 0 && moment <= at, isFresh = isTold && at - moment < 60000;
        ink.beginPath();
        ink.arc(...place(j), isFresh ? Math.min(pitch / 2, radius * 1.4) : radius, 0, 2 * Math.PI);
        ink.fillStyle = color(isTold ? "notification" : "line");
        ink.fill();
      });
      const only = notified(r) === 1 ? r.told.findIndex((moment) => moment >= 0 && moment <= at) : -1;
      if (only >= 0) { // one among many: with a ring it is found
        ink.beginPath();
        ink.arc(...place(only), radius + 4, 0, 2 * Math.PI);
        ink.lineWidth = 3;
        ink.strokeStyle = color("holder");
        ink.stroke();
      }
      const sent = r.sent.findLast(([moment]) => moment <= at)?.[1] ?? 0;
      bar.style.width = 100 * sent / most + "%";
      fields[i].shown = { told: r.told.filter((moment) => moment >= 0 && moment <= at).length, sent };
      const words = say(`${number(fields[i].shown.told)} notified, ${number(sent)} bytes`, `${number(fields[i].shown.told)} 个收到通知，${number(sent)} 字节`);
      if (fields[i].counts.textContent !== words) fields[i].counts.textContent = words;
    });
  }

  const end = () => Math.max(...crowd.releases.flatMap((r) => [...r.told, r.sent.at(-1)?.[0] ?? 0]));

  // release shows the release of a crowd from its beginning.
  function release(of) {
    crowd = of;
    const mine = ++runs, over = end(), began = performance.now();
    at = still.matches ? over : 0;
    write();
    const tick = (now) => {
      if (mine !== runs) return;
      at = Math.min(over, over * (now - began) / SHOWN);
      paint();
      at < over ? requestAnimationFrame(tick) : write();
    };
    if (at < over) requestAnimationFrame(tick);
  }

  // ---- Words ----

  function write() {
    const first = crowds[0], n = crowd.waiters, isOver = at >= end(), has = drawn.at(-1) > 0;
    root.classList.toggle("seen", seen);
    ask.textContent = seen ? say(`${number(n)} clients wait, one dot each. Step 4 notifies only the next holder, which has a ring.`, `${number(n)} 个客户端在等，每个点是一个客户端。第 4 步只通知下一个持有者，用圆圈标出。`)
      : say(`With ${first.waiters} waiting, one release in step 3 sends ${number(first.releases[0].bytes)} bytes to them. How many with ${number(largest)}? Draw your line: drag the circles, or use ↑ and ↓.`,
        `${first.waiters} 个客户端在等时，第 3 步的一次释放发给它们 ${number(first.releases[0].bytes)} 字节。${number(largest)} 个在等时是多少？请画出你的线：拖动圆圈，或按 ↑ ↓。`);
    reveal.textContent = say("Release the lock", "释放锁");
    reveal.disabled = !has;
    unsure.textContent = say("I do not know", "我不知道");
    reveal.hidden = unsure.hidden = both.hidden = all.hidden = sizes.hidden = false;
    if (seen) reveal.hidden = unsure.hidden = true;
    else both.hidden = all.hidden = sizes.hidden = true;
    const [three, four] = crowds.at(-1).releases;
    const factor = (n) => number(Number(n.toPrecision(2)));
    const off = three.bytes / (drawn.at(-1) || three.bytes); // less than twice as many is about right
    const wrong = off >= 2 ? say(`, about ${factor(off)} times too few`, `，实际约是它的 ${factor(off)} 倍`) : off <= 0.5 ? say(`, about ${factor(1 / off)} times too many`, `，约是实际的 ${factor(1 / off)} 倍`) : "";
    answer.textContent = !seen || !isOver ? "" : (has ? say(`You said ${number(drawn.at(-1))} bytes${wrong}. `, `你画的是 ${number(drawn.at(-1))} 字节${wrong}。`) : "")
      + say(`Recorded with ${number(largest)} waiting: ${number(three.bytes)} bytes, beside ${number(four.bytes)} in step 4. Each notified client lists the whole queue, so a crowd that is ten times as large costs about a hundred times as much.`,
        `录得 ${number(largest)} 个在等时：${number(three.bytes)} 字节，第 4 步是 ${number(four.bytes)} 字节。每个收到通知的客户端都列出整个队列，所以人群大十倍，代价大约一百倍。`);
    sizes.replaceChildren(element("span", {}, say("waiting: ", "在等：")), ...crowds.map((c) => {
      const b = element("button", { type: "button", onclick: () => release(c) }, `▶ ${number(c.waiters)}`);
      b.setAttribute("aria-pressed", c === crowd);
      return b;
    }));
    NAMES.forEach((name, i) => { fields[i].title.textContent = say(name); fields[i].canvas.setAttribute("aria-label", say(`${name.en}: ${notified(crowd.releases[i])} of ${n} are notified`, `${name.zh}：${n} 个当中有 ${notified(crowd.releases[i])} 个收到通知`)); });
    all.textContent = !isOver ? " " : say(`Until all ${number(n)} have had their turn, there are ${number(n * (n + 1) / 2)} notifications in step 3, and ${number(n)} in step 4.`,
      `等这 ${number(n)} 个客户端都轮到一次，第 3 步一共有 ${number(n * (n + 1) / 2)} 条通知，第 4 步有 ${number(n)} 条。`);
    plot();
    paint();
  }

  function shows() {
    seen = true;
    release(crowds.at(-1));
    told();
    sizes.querySelector("[aria-pressed=true]")?.focus({ preventScroll: true });
  }
  reveal.onclick = unsure.onclick = shows;
  addEventListener("language", write);
  addEventListener("resize", () => { plot(); paint(); });
  new ResizeObserver(paint).observe(root);
  write();
  return { add: release, fields, drawn, isSeen: () => seen };
}
