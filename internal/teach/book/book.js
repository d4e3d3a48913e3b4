// What a page of the book does beyond being read: search, questions, slides. Each works
// from a file, and without anything that is kept.

const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, text = "", properties = {}) =>
  Object.assign(document.createElement(tag), { textContent: text }, properties);

// ---- Search ----

const search = $("#search"), found = $("#found");

const index = []; // of each page: its name, its title, and its sections
let loading = null;

// loaded loads the index of each page, at the first search.
function loaded() {
  loading ??= Promise.all(pages.map((page) => new Promise((done) => {
    document.head.append(make("script", "", { src: `search/${page}.js`, onload: done, onerror: done }));
  })));
  return loading;
}

const most = 20; // places that are listed

function look() {
  const words = search.value.toLowerCase().split(/\s+/).filter((word) => word);
  found.hidden = words.length === 0;
  if (found.hidden) return;
  const hits = [], order = (hit) => pages.indexOf(hit.page);
  for (const [page, title, sections] of index) {
    for (const [id, heading, text] of sections) {
      const inTitle = (title + " " + heading).toLowerCase(), everything = inTitle + " " + text.toLowerCase();
      if (!words.every((word) => everything.includes(word))) continue;
      hits.push({ page, id, title, heading, text, rank: words.filter((word) => inTitle.includes(word)).length });
    }
  }
  hits.sort((a, b) => b.rank - a.rank || order(a) - order(b));
  $("p", found).textContent = hits.length ? `${hits.length} ${labels.found}` : labels.nothing;
  $("ol", found).replaceChildren(...hits.slice(0, most).map((hit) => {
    const item = make("li"), name = hit.heading === hit.title ? hit.title : `${hit.title}: ${hit.heading}`;
    const link = make("a", name, { href: `${hit.page}.html#${hit.id}`, onclick: () => { found.hidden = true; } });
    item.append(link, excerpt(hit.text, words));
    return item;
  }));
}

// excerpt is what stands around the first of the words, which is marked.
function excerpt(text, words) {
  const small = make("small"), at = words.map((word) => text.toLowerCase().indexOf(word)).find((i) => i >= 0) ?? -1;
  if (at < 0) return small;
  const word = words.find((w) => text.toLowerCase().indexOf(w) === at);
  const end = at + word.length;
  small.append(text.slice(Math.max(0, at - 60), at), make("mark", text.slice(at, end)), text.slice(end, at + 120));
  return small;
}

search.oninput = () => loaded().then(look);
search.onfocus = loaded;
$("form[role=search]").onsubmit = (e) => {
  e.preventDefault();
  $("ol a", found)?.click();
};

// ---- Questions ----

for (const question of all(".question")) {
  const key = "zklock-answer-" + question.dataset.key;
  const form = $("form", question), answer = $("details", question), yours = $(".yours", question);
  const numbers = all("[data-answer]", form), choices = all("[name=choice]", form), text = $("textarea", form);
  const after = $(`[data-after="${question.dataset.key}"]`);

  // veil hides what answers the question, until it is answered or somebody wants to see it.
  function veil(hidden) {
    after?.classList.toggle("veiled", hidden);
    if (after && hidden && !$(".veil", after)) {
      const p = make("p", labels.veiled, { className: "veil" });
      p.append(make("button", labels.show, { type: "button", onclick: () => veil(false) }));
      after.prepend(p);
    } else if (!hidden) {
      after && $(".veil", after)?.remove();
    }
  }

  function given() {
    if (choices.length) return String(choices.findIndex((c) => c.checked));
    return text ? text.value : numbers.map((n) => n.value).join(" ");
  }
  function restore(said) {
    if (choices.length) choices[Number(said)]?.click();
    else if (text) text.value = said;
    else said.split(" ").forEach((value, i) => { if (numbers[i]) numbers[i].value = value; });
  }

  // compare says what was answered, and how far it is from the answer.
  function compare() {
    yours.replaceChildren();
    const line = (said, verdict, right) => {
      const p = make("span", `${labels.said}: ${said} `);
      if (verdict) p.append(make("b", verdict, { className: right ? "" : "off" }));
      yours.append(p, make("br"));
    };
    if (choices.length) {
      const chosen = choices.find((c) => c.checked), right = "right" in chosen.dataset;
      line(chosen.parentElement.textContent.trim(), right ? labels.right : labels.wrong, right);
    }
    for (const n of numbers) {
      const value = Number(n.value.replaceAll(",", "")), answer = Number(n.dataset.answer);
      const of = n.parentElement.lastElementChild.textContent;
      const near = value === answer || answer > 0 && Math.abs(value - answer) <= answer / 4;
      line(`${n.value} ${of}`, value === answer ? labels.right : near ? labels.near : labels.far, near);
    }
    if (text) line(text.value);
    yours.append(make("button", labels.again, { type: "button", onclick: again }));
    form.hidden = answer.open = true;
    veil(false);
  }

  function again() {
    store.set(key, null);
    yours.replaceChildren();
    form.reset();
    form.hidden = answer.open = false;
    veil(true);
    $("input, textarea", form).focus();
  }

  form.onsubmit = (e) => {
    e.preventDefault();
    store.set(key, given());
    compare();
    $("summary", answer).focus();
  };
  answer.addEventListener("toggle", () => { if (answer.open) veil(false); });
  const kept = store.get(key);
  veil(kept === null);
  if (kept !== null) {
    restore(kept);
    compare();
  }
}

// What the tests print answers the questions of a chapter: it is shown to who has answered them.
for (const printed of all(".outputs")) {
  printed.open = printed.dataset.answered.split(" ").every((key) => store.get("zklock-answer-" + key) !== null);
}

addEventListener("beforeprint", () => all("details").forEach((d) => { d.open = true; }));

// ---- Slides ----

const slides = $("#slides"), stage = $(".stage", slides);
const idea = 260, lead = 160; // letters of text on a slide, and of one that leads to what stands below it
const largest = 56, smallest = 24; // pixels of a letter, on a stage of 1920 by 1080
const besideRun = 30; // pixels of a letter around a run that plays
let shown = [], place = 0;

// makeSlides cuts the page into slides: each heading begins one, and each picture, table,
// piece of code, question and answer has one of its own.
function makeSlides() {
  const list = [];
  let heading = "", body = null;
  const add = (source, nodes, kind = "") => {
    list.push({ source, heading, nodes, kind });
    body = null;
  };
  const block = (node) => {
    if (node.matches(".way, .veil, blockquote")) return;
    if (node.matches(".run")) return list.push({ source: node, heading, nodes: [], kind: "plays", size: besideRun }) && (body = null);
    if (node.matches("h1, h2, h3, h4")) {
      heading = node.textContent;
      body = null;
      if (node.matches("h1")) add(node, [], "first");
      return;
    }
    if (node.matches(".question")) {
      add(node, [...$(".asked", node).children], "asks");
      add($("details", node), [...$("details", node).children].filter((n) => !n.matches("summary, .yours")), "answers");
      return;
    }
    if (node.matches(".after")) return [...node.children].forEach(block);
    if ($(".figure", node)) return all(".figure", node).forEach((figure) => add(node, [figure]));
    const isText = node.matches("p"), most = isText ? idea - node.textContent.length : lead;
    const room = body ? most - text(body.nodes) : -1;
    if (room >= 0) body.nodes.push(node);
    else add(node, [node]);
    body = isText ? list.at(-1) : null;
  };
  const text = (nodes) => nodes.reduce((sum, n) => sum + n.textContent.length, 0);
  [...$("article").children].forEach(block);
  return list.flatMap((slide) => slide.kind === "plays" ? [slide] : fit(slide));
}

// fit makes the letters of a slide as large as they may be. What does not fit in the
// smallest letters becomes two slides.
function fit(slide) {
  for (let size = largest; size >= smallest; size -= 4) {
    if (put(slide, size)) return [{ ...slide, size }];
  }
  const halves = slide.nodes.length > 1 ? inHalves(slide.nodes) : cut(slide.nodes[0]);
  return halves ? halves.flatMap((nodes) => fit({ ...slide, nodes })) : [{ ...slide, size: smallest }];
}

const inHalves = (list) => [list.slice(0, Math.ceil(list.length / 2)), list.slice(Math.ceil(list.length / 2))];

// cut makes two of a table, a list or a piece of code.
function cut(node) {
  if (node.matches("pre")) {
    const lines = node.textContent.replace(/\n$/, "").split("\n");
    return lines.length > 1 ? inHalves(lines).map((part) => {
      const pre = make("pre", "", { className: node.className });
      pre.append(make("code", part.join("\n")));
      return [pre];
    }) : null;
  }
  const within = $("tbody", node) ?? (node.matches("ul, ol") ? node : null);
  if (!within || within.children.length < 2) return null;
  return inHalves([...within.children.keys()]).map((keep) => {
    const copy = node.cloneNode(true), rows = [...($("tbody", copy) ?? copy).children];
    rows.forEach((row, i) => keep.includes(i) || row.remove());
    if (copy.matches("ol")) copy.start = node.start + keep[0];
    return [copy];
  });
}

// A run plays on one place only: on its slide, or else in the text, where home stands for it.
let home = null;

function intoTheText() {
  const run = $(".run", stage);
  if (run) home.replaceWith(run);
}

// put shows a slide, and tells whether all of it is seen.
function put(slide, size) {
  intoTheText();
  const body = make("div", "", { className: "body " + slide.kind });
  body.style.fontSize = size + "px";
  for (const node of slide.nodes) {
    const copy = node.cloneNode(true);
    for (const e of [copy, ...all("[id]", copy)]) e.removeAttribute("id");
    body.append(copy);
  }
  const heading = make("p", slide.heading, { className: "heading" });
  stage.className = "stage " + slide.kind;
  if (slide.kind === "plays") {
    home = document.createComment("a run");
    slide.source.replaceWith(home);
    body.append(slide.source);
  }
  stage.replaceChildren(heading, body);
  return body.scrollHeight <= body.clientHeight + 1 && body.scrollWidth <= body.clientWidth + 1;
}

function turn(to) {
  place = Math.min(shown.length - 1, Math.max(0, to));
  put(shown[place], shown[place].size);
  $("output", slides).textContent = `${place + 1} / ${shown.length}`;
  address(`#slides-${place + 1}`);
}

function scale() {
  stage.style.transform = `scale(${Math.min(innerWidth / 1920, innerHeight / 1080)})`;
}

function present(from) {
  slides.hidden = false;
  for (const other of all("body > :not(#slides)")) other.inert = true;
  if (!shown.length) shown = makeSlides();
  const notes = $("#notes");
  if (notes) $(".notes", slides).innerHTML = notes.innerHTML;
  scale();
  turn(from ?? Math.max(0, shown.findIndex((s) => s.source.getBoundingClientRect().top >= -1)));
  slides.focus();
}

function leave() {
  slides.hidden = true;
  intoTheText();
  for (const other of all("body > :not(#slides)")) other.inert = false;
  address(location.pathname);
  shown[place].source.scrollIntoView();
  $("#show-slides").focus({ preventScroll: true });
}

const keys = {
  ArrowRight: () => turn(place + 1), PageDown: () => turn(place + 1), " ": () => turn(place + 1),
  ArrowLeft: () => turn(place - 1), PageUp: () => turn(place - 1),
  Home: () => turn(0), End: () => turn(shown.length - 1), Escape: leave,
  n: () => { const notes = $(".notes", slides); notes.hidden = !notes.hidden || !notes.textContent; },
};

for (const button of all("[data-turn]")) {
  button.onclick = () => button.dataset.turn === "leave" ? leave() : turn(place + Number(button.dataset.turn));
}
$("#show-slides").onclick = () => present();
addEventListener("resize", scale);
addEventListener("hashchange", openHash);

function openHash() {
  const slide = location.hash.match(/^#slides(?:-(\d+))?$/);
  if (slide) present(Number(slide[1] ?? 1) - 1);
}
openHash();

addEventListener("keydown", (e) => {
  if (e.altKey || e.ctrlKey || e.metaKey) return;
  if (!slides.hidden) {
    if (!keys[e.key] || e.key === " " && e.target.matches("button")) return;
    e.preventDefault();
    keys[e.key]();
  } else if (e.key === "Escape" && !found.hidden) {
    found.hidden = true;
    search.focus();
  } else if (!e.target.matches("input, textarea")) {
    if (e.key === "s") present();
    if (e.key === "/") {
      e.preventDefault();
      search.focus();
    }
  }
});
