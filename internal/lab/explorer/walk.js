// The reader walks through the interleavings, and chooses at each point what happens next.

const tree = JSON.parse(document.getElementById("tree")?.textContent ?? "null");

if (tree) {
  const at = (id) => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => {
    const e = Object.assign(document.createElement(tag), properties);
    e.append(...children);
    return e;
  };
  const words = (i) => brief(say(tree.texts[i]));
  let path = []; // the options chosen so far

  // count counts the ends that can be reached from a point: those that are wrong, and all that were
  // played.
  const counts = new Map();
  const count = (point) => {
    if (!counts.has(point)) {
      const ends = (point.choices ?? []).map((o) => count(o.then));
      const own = { wrong: point.wrong ? 1 : 0, all: point.choices || point.covered ? 0 : 1 };
      counts.set(point, ends.reduce((a, b) => ({ wrong: a.wrong + b.wrong, all: a.all + b.all }), own));
    }
    return counts.get(point);
  };

  document.body.classList.toggle("right", !count(tree.root).wrong);

  const isFault = (o) => /LOST|CRASH|EXPIRES|GIVES UP/.test(tree.texts[o.text].en);
  const here = () => path.at(-1)?.then ?? tree.root;

  function show() {
    const point = here(), { wrong, all } = count(point);
    at("happened").replaceChildren(...path.map((o) => make("li", {}, words(o.text), ...(o.came ?? []).map((i) => make("span", { className: "came" }, words(i))))));
    const isOver = !point.choices;
    const verdict = at("verdict");
    verdict.className = point.wrong ? "wrong" : "";
    verdict.replaceChildren(...(!isOver ? [] : point.covered && !point.wrong ? [say("From here on, everything is the same as in another interleaving. Only the beginning differs. Take the last choice back.", "从这里往后，与另一种交错次序完全一样，只有开头不同。请撤回上一步。")]
      : [make("b", {}, point.wrong ? say(`Wrong, after ${path.length} choices: `, `出错了，用了 ${path.length} 次选择：`) + point.wrong.map(words).join(say(". ", "；")) : say("This interleaving is right.", "这种交错次序是正确的。")),
        (point.ends ?? []).map((i) => capital(words(i))).join(say(". ", "。"))]));
    const faults = Number(at("walk").dataset.faults), areUsed = faults > 0 && path.filter(isFault).length === faults;
    at("used").textContent = isOver || !areUsed ? "" : faults === 1 ? say("The one fault is used.", "唯一的一次故障已经用掉。") : say(`All ${faults} faults are used.`, `${faults} 次故障都已经用掉。`);
    const isMarked = at("marked")?.checked, clients = [...new Set((point.choices ?? []).map((o) => o.client))].sort();
    at("options").replaceChildren(...clients.map((client) => make("div", {}, make("h4", {}, say(`client ${client}`, `客户端 ${client}`)),
      ...point.choices.filter((o) => o.client === client).sort((a, b) => isFault(a) - isFault(b)).map((o) => {
        const { wrong, all } = count(o.then);
        const doomed = isMarked && all > 0 && wrong === all;
        const b = make("button", { type: "button", className: (isFault(o) ? "fault" : "") + (doomed ? " doomed" : "") }, words(o.text));
        b.onclick = () => { path.push(o); show(); at("options").querySelector("button")?.focus({ preventScroll: true }); };
        return b;
      }))));
    at("undo").disabled = at("afresh").disabled = !path.length;
  }

  at("undo").onclick = () => { path.pop(); show(); };
  at("afresh").onclick = () => { path = []; show(); };
  if (at("marked")) at("marked").onchange = show;
  addEventListener("language", show);
}
