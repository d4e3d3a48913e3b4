"use strict";
// What the tour's page, make play and the book do alike: light or dark, what the browser
// keeps, and the address. It works from a file, and where nothing is kept.

const store = {
  get(key) { try { return localStorage.getItem(key); } catch { return null; } },
  set(key, value) {
    try { value === null ? localStorage.removeItem(key) : localStorage.setItem(key, value); } catch { /* not kept */ }
  },
};

// drawAgain has the page draw its canvases again, in other colours.
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

// address writes the page's address, without going there; isPlace: Back returns to the one
// before. A browser refuses to do that often: then it is not up to date.
function address(to, isPlace = false) {
  try {
    isPlace ? history.pushState(null, "", to) : history.replaceState(null, "", to);
  } catch { /* not up to date */ }
}
