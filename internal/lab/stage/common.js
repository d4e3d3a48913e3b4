"use strict";
// What all pages have in common: the light or dark theme, what the browser stores, and the address.
// It also works if the page was opened as a file, and if the browser stores nothing.

const store = {
  get(key) { try { return localStorage.getItem(key); } catch { return null; } },
  set(key, value) {
    try { value === null ? localStorage.removeItem(key) : localStorage.setItem(key, value); } catch { /* not kept */ }
  },
};

// drawAgain makes the page draw its canvases again, in other colours.
const drawAgain = () => dispatchEvent(new Event("resize"));

(() => {
  const chosen = document.documentElement.dataset, dark = matchMedia("(prefers-color-scheme: dark)");
  chosen.theme ||= store.get("zklock-theme") ?? "";
  dark.addEventListener("change", drawAgain);
  document.getElementById("theme").onclick = () => {
    chosen.theme = (chosen.theme ? chosen.theme === "dark" : dark.matches) ? "light" : "dark";
    store.set("zklock-theme", chosen.theme);
    drawAgain();
  };
})();

// address changes the page's address without loading a page. If isPlace is set, Back returns to the
// address before. If a page does this too often, the browser refuses it. The address is then out of
// date.
function address(to, isPlace = false) {
  try {
    isPlace ? history.pushState(null, "", to) : history.replaceState(null, "", to);
  } catch { /* not up to date */ }
}
