"use strict";
// The language of a page. What is written on it, in the document or on a canvas, is
// in English; here it is put into the reader's language, as words.go does it.

const language = (() => {
  const verb = /%(?:\[(\d+)\])?[-+# 0]*\d*(?:\.\d+)?(?:\[(\d+)\])?([a-zA-Z%])/g;
  const pairs = Object.entries(JSON.parse(document.getElementById("words").textContent));
  const exact = new Map(pairs), english = (text) => (text.match(/[A-Za-z]+/g) ?? []).length;
  const quote = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const patterns = pairs.filter(([en]) => en.search(verb) >= 0).map(([en, zh]) => {
    const fixed = en.split(/%(?:\[\d+\])?[-+# 0]*\d*(?:\.\d+)?[a-zA-Z%]/);
    return { en, zh, letters: fixed.join("").length, longest: fixed.reduce((a, b) => b.length > a.length ? b : a) };
  }).filter((p) => p.longest.trim().length > 2).sort((a, b) => b.letters - a.letters); // "to" says too little

  function matcher(p) {
    let from = 0, pattern = "^";
    for (const m of p.en.matchAll(verb)) {
      pattern += quote(p.en.slice(from, m.index)) + ({ "%": "%", d: " *(-?[0-9][0-9,]*) *", f: " *(-?[0-9.e+-]+) *", g: " *(-?[0-9.e+-]+) *", q: '"(.*?)"' }[m[3]] ?? "(.*?)");
      from = m.index + m[0].length;
    }
    return p.fits ??= new RegExp(pattern + quote(p.en.slice(from)) + "$", "s");
  }

  function filled(zh, parts) {
    let next = 0;
    return zh.replace(verb, (v, before, behind, kind) => {
      if (kind === "%") return "%";
      if (before ?? behind) next = (before ?? behind) - 1;
      const part = translate((parts[next++] ?? "").trim());
      return kind === "q" ? `"${part}"` : part;
    });
  }

  const known = new Map();
  function translate(text) {
    const core = text.trim();
    if (!core) return text;
    if (!known.has(core)) known.set(core, found(core));
    return text.replace(core, () => known.get(core));
  }

  function found(text) {
    if (exact.has(text) && !text.includes("%")) return exact.get(text);
    if (/\p{Script=Han}/u.test(text)) return text;
    const mark = text.match(/^([✓✗–?»!]|\d+\.) (.*)$/s);
    if (mark) return mark[1] + " " + translate(mark[2]);
    let best = text, left = english(text);
    const attempt = (chinese) => { const n = english(chinese); if (n < left) [best, left] = [chinese, n]; };
    if (!left) return text;
    const split = (between) => { // several sentences: each for itself
      let i = text.indexOf(between);
      if (i <= 0) return;
      const cut = i + between.replace("(", "").length;
      if (between[0] === ".") i++;
      attempt(translate(text.slice(0, i)) + text.slice(i, cut) + translate(text.slice(cut)));
    };
    split("\n");
    split(". ");
    for (const p of patterns) {
      const m = text.includes(p.longest) && text.match(matcher(p));
      if (m) attempt(filled(p.zh, m.slice(1)));
    }
    if (text.endsWith(".")) {
      if (best !== text && !best.endsWith("。")) left++; // its full stop was taken for a part of something
      attempt(translate(text.slice(0, -1)) + "。");
    }
    for (const between of ["  ", " (", ": ", "; ", ", "]) split(between);
    if (text.startsWith("(") && text.endsWith(")")) attempt("（" + translate(text.slice(1, -1)) + "）");
    if (/^[A-Z]/.test(text)) attempt(translate(text[0].toLowerCase() + text.slice(1)));
    return best;
  }

  // ---- The page ----

  let chosen;
  try { chosen = localStorage.getItem("language"); } catch { /* a file may have no storage */ }
  chosen ??= navigator.language.startsWith("zh") ? "zh" : "en";
  const say = (text) => chosen === "zh" ? translate(String(text)) : text;

  const texts = new WeakMap(); // what a text or an element's label is in both languages
  function inOwn(key, is) {
    let t = texts.get(key);
    if (!t || is !== t.en && is !== t.zh) texts.set(key, t = { en: is, zh: translate(is) });
    return t[chosen];
  }
  function tell(root) {
    const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let n = root; n; n = nodes.nextNode()) {
      if (n.nodeType === Node.TEXT_NODE && !n.parentElement?.closest("script, style, [translate=no]")) {
        const own = inOwn(n, n.data);
        if (n.data !== own) n.data = own;
      } else if (n.nodeType === Node.ELEMENT_NODE && n.hasAttribute("aria-label")) {
        const own = inOwn(n, n.getAttribute("aria-label"));
        if (n.getAttribute("aria-label") !== own) n.setAttribute("aria-label", own);
      }
    }
  }
  new MutationObserver((changes) => {
    for (const c of changes) for (const n of c.type === "childList" ? c.addedNodes : [c.target]) tell(n);
  }).observe(document.body, { subtree: true, childList: true, characterData: true, attributeFilter: ["aria-label"] });

  const canvas = CanvasRenderingContext2D.prototype;
  for (const method of ["fillText", "measureText"]) {
    const draw = canvas[method];
    canvas[method] = function (text, ...where) { return draw.call(this, say(text), ...where); };
  }

  const button = document.getElementById("language");
  function choose(language) {
    chosen = language;
    document.documentElement.lang = chosen === "zh" ? "zh-CN" : "en";
    button.textContent = chosen === "zh" ? "English" : "中文";
    tell(document.body);
    dispatchEvent(new Event("resize")); // draws the canvases again
  }
  button.onclick = () => {
    choose(chosen === "zh" ? "en" : "zh");
    try { localStorage.setItem("language", chosen); } catch { /* then it is not remembered */ }
  };
  choose(chosen);
  return { translate, tell };
})();
