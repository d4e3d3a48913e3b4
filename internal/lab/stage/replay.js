// The replay. Everything that it shows was recorded. It only slows the clock down, and cuts idle
// times short.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

data.stories.forEach((story) => ready(story));

// ---- The player ----

const stages = [new Stage($("left"), 1.7), new Stage($("right"), 1.7)];
const player = { now: 0, playing: false, speed: 1, chosen: [], stages: [], clock: null, moments: [], focus: null };

// choose puts one story on the stages.
function choose(id, left, right) {
  const story = data.titles.find((s) => s.id === id);
  const find = (step) => data.stories.find((s) => s.id === id && s.step === step);
  if (!find(left)) left = story.pair[0] ?? story.steps[0];
  if (right !== "" && (!find(right) || right === left)) right = story.pair[1] ?? "";
  player.chosen = [story, left, right];
  $("stages").classList.toggle("pair", right !== "");
  $("right").hidden = right === "";
  player.stages = stages.slice(0, right === "" ? 1 : 2);
  player.stages.forEach((stage, i) => {
    const story = find([left, right][i]), of = data.steps.find((s) => s.key === story.step);
    stage.show(story, of.heading, of.lesson);
  });
  player.clock = clock(player.stages.map((s) => s.story));
  player.moments = player.stages.flatMap((stage, i) => stage.story.frames.map((f) =>
    ({ at: player.clock.shown(i, (f.from + f.to) / 2), stage: i, frame: f }))).sort((a, b) => a.at - b.at);
  $("slider").max = Math.round(player.clock.length);
  write();
  const { phases } = player.clock;
  pause();
  // The tour begins with the result of the first part.
  go(data.steps.length > 1 && data.titles.length > 1 ? phases[1]?.at ?? 0 : 0);
  address(`#${id}/${left}/${right}`);
}

// write writes the text around the stages. It is also called when the language has changed.
function write() {
  const [story, left, right] = player.chosen;
  options($("story"), data.titles.map((s) => [s.id, data.titles.length > 1 ? titled(s) : say(s.title)]), story.id);
  options($("first"), story.steps.map((k) => [k, stepName(k)]), left);
  options($("second"), [["", say("nothing", "无")], ...story.steps.filter((k) => k !== left).map((k) => [k, stepName(k)])], right);
  $("watch-for").textContent = say(story.watch);
  for (const stage of player.stages) stage.write();
  phaseButtons();
  label();
  resize();
}

// titled returns the title of a story, with the steps that it compares, or with the first step that
// plays it.
function titled({ pair: [one, other], steps, title }) {
  const name = say(title), first = one ?? steps[0];
  if (data.steps.length === 1) return name;
  return other ? say(`Steps ${first} and ${other}: ${name}`, `第 ${first}、${other} 步：${name}`) : say(`Step ${first}: ${name}`, `第 ${first} 步：${name}`);
}

const stepName = (key) => say(data.steps.find((s) => s.key === key).heading);

function options(select, list, chosen) {
  select.replaceChildren(...list.map(([value, text]) => new Option(text, value, false, value === chosen)));
  select.parentElement.hidden = list.length < 2; // there is nothing to choose
}

function phaseButtons() {
  const phases = player.stages[0].story.phases, { clock } = player;
  $("phases").replaceChildren(...phases.map((p, i) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = `${i + 1}. ${brief(phaseTitle(p))}`;
    if (data.steps.length === 1 && p.sum.en) { // for a single lock, the summary of each part is shown beside it
      b.append(Object.assign(document.createElement("small"), { textContent: brief(say(p.sum)) }));
    }
    const { at, lasts } = clock.phases[i];
    b.onclick = () => go(data.steps.length === 1 ? at + lasts : at); // a summary describes the end of its part
    return b;
  }));
}

function resize() {
  for (const s of player.stages) s.size();
  render();
}

// go shows a moment of the show. focus has the frame that a step has stopped at, if any.
function go(now, focus = null) {
  player.now = Math.min(player.clock.length, Math.max(0, now));
  player.focus = focus;
  if (player.now >= player.clock.length) pause();
  render();
}

function render() {
  const { clock, now, focus } = player;
  const p = clock.phaseAt(now), phase = clock.phases[p];
  player.stages.forEach((stage, i) => {
    const of = stage.story.phases[Math.min(p, stage.story.phases.length - 1)];
    stage.draw(clock.recorded(i, now), focus?.stage === i ? focus.frame : null);
    const done = now >= clock.over(i, p);
    const before = now <= phase.at && stage.story.phases[p - 1]; // the part has not begun
    set(stage.root.querySelector(".caption"), brief(before ? say(before.sum) : done && of.sum.en ? say(of.sum) : phaseTitle(of) + say(".", "。")));
    const c = stage.tally(of);
    for (const name of ["notifications", "requests", "bytes"]) {
      set(stage.root.querySelector(`[data-count=${name}]`), c[name].toLocaleString("en"));
    }
    set(stage.root.querySelector(".detail"), focus?.stage === i ? sentence(stage.story, focus.frame) : " ");
  });
  if (!player.playing) table();
  $("slider").value = now;
  const percent = Math.round(100 * now / clock.length), part = phaseTitle(player.stages[0].story.phases[p]);
  $("slider").setAttribute("aria-valuetext", say(`${part}, ${percent} percent of the show`, `${part}，进度 ${percent}%`));
  [...$("phases").children].forEach((b, i) => b.setAttribute("aria-current", i === p ? "step" : "false"));
}

// set writes a text only if it is new, because a live region is read aloud at each change.
function set(element, text) { if (element.said !== text) element.textContent = element.said = text; }

// table writes in words what is drawn.
function table() {
  for (const stage of player.stages) {
    const { story, t } = stage, rows = story.clients.slice(0, 40).map((c, i) => {
      const own = story.nodes.filter((n) => n.owner === i && there(n, t)).map(number).join(", ");
      const watched = story.watches.filter((w) => w.client === i && there(w, t)).map((w) => target(story, w)).join(", ");
      return [say(c.name), stateName(stateAt(c, t), own !== ""), own || say("none", "无"), watched || say("nothing", "无")];
    });
    stage.root.querySelector("tbody").replaceChildren(...rows.map((cells) => {
      const tr = document.createElement("tr");
      tr.append(...cells.map((text, i) => Object.assign(document.createElement(i ? "td" : "th"), { textContent: text, ...(i ? {} : { scope: "row" }) })));
      return tr;
    }));
  }
}

function play() {
  if (player.now >= player.clock.length) player.now = 0;
  player.playing = true;
  player.focus = null;
  label();
  let last;
  const tick = (time) => {
    if (!player.playing) return;
    const passed = last === undefined ? 0 : time - last;
    last = time;
    go(player.now + passed * player.speed);
    if (player.playing) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

function pause() {
  player.playing = false;
  label();
}

function label() {
  $("play").textContent = player.playing ? say("❚❚ Pause", "❚❚ 暂停") : say("▶ Play", "▶ 播放");
}

function toggle() {
  if (!player.playing) return play();
  pause();
  render();
}

// step moves to the next frame of the record, or to the one before.
function step(by) {
  pause();
  const { moments, now, focus } = player;
  let i = focus ? moments.findIndex((m) => m.frame === focus.frame && m.stage === focus.stage) + by
    : by > 0 ? moments.findIndex((m) => m.at > now) : moments.findLastIndex((m) => m.at < now);
  if (i < 0 && by > 0 || i >= moments.length) return go(player.clock.length);
  if (i < 0) return go(0);
  go(moments[i].at, moments[i]);
}

function skip(by) {
  const { phases } = player.clock, p = player.clock.phaseAt(player.now) + by;
  go(p < 0 ? 0 : p >= phases.length ? player.clock.length : phases[p].at);
}

$("play").onclick = toggle;
$("back").onclick = () => step(-1);
$("forth").onclick = () => step(1);
$("start").onclick = () => { pause(); go(0); };
$("speed").onchange = (e) => { player.speed = Number(e.target.value); };
$("slider").oninput = (e) => { pause(); go(Number(e.target.value)); };
for (const id of ["story", "first", "second"]) $(id).onchange = () => choose($("story").value, $("first").value, $("second").value);
$("story").onchange = () => { const s = data.titles.find((s) => s.id === $("story").value); choose(s.id, s.pair[0], s.pair[1] ?? ""); };

const keys = { " ": toggle, ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => go(0),
  End: () => go(player.clock.length), PageDown: () => skip(1), PageUp: () => skip(-1) };
document.addEventListener("keydown", (e) => {
  const inReplay = e.target === document.body || $("replay").contains(e.target);
  const busy = e.target.matches("select, summary") || e.key === " " && e.target.matches("button, a");
  if (!inReplay || busy || e.altKey || e.ctrlKey || e.metaKey || !keys[e.key]) return;
  e.preventDefault();
  keys[e.key]();
});

// ---- The page around it ----

for (const b of document.querySelectorAll("[data-evidence]")) b.onclick = () => {
  const dialog = $(b.dataset.evidence), messages = dialog.querySelector(".scroll");
  dialog.showModal();
  if (!messages) return;
  const fault = messages.querySelector(".lost, .told"); // the lost message, or the first notification
  messages.scrollTo(0, fault ? fault.offsetTop - 100 : 0);
};

addEventListener("resize", resize);
addEventListener("language", write);
addEventListener("beforeprint", resize);

// named returns the parts of the address: a story and the steps to show.
function named() {
  try {
    return decodeURIComponent(location.hash.slice(1)).split("/");
  } catch { // it is no address of this page
    return [];
  }
}

const [id, left, right] = named();
const wanted = data.titles.find((s) => s.id === id) ?? data.titles.find((s) => s.id === "release") ?? data.titles[0];
choose(wanted.id, wanted.id === id ? left : wanted.pair[0], wanted.id === id ? right : wanted.pair[1] ?? "");

chooseLanguage($("language"));
