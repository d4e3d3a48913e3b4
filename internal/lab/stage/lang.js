// The language of a page. What stands in the page from the beginning has its Chinese beside
// it, in data-zh or data-zh-label. What a script writes it says by say, once more when it
// hears of "language". The address says which language, as in ?lang=zh; else it is what the
// reader has chosen last, what the page was made with, or the browser's own.

let reader = "en";

// say is what a page says in the reader's language: a text of Go's, {en, zh}, or both.
function say(en, zh) {
  if (typeof en === "object") return en[reader];
  return reader === "zh" ? zh : en;
}

// speak puts the page into a language.
function speak(language) {
  reader = language;
  document.documentElement.lang = reader === "zh" ? "zh-CN" : "en";
  for (const e of document.querySelectorAll("[data-zh]")) {
    e.dataset.en ??= e.textContent;
    e.textContent = e.dataset[reader];
  }
  for (const e of document.querySelectorAll("[data-zh-label]")) {
    e.dataset.enLabel ??= e.ariaLabel;
    e.ariaLabel = e.dataset[reader + "Label"];
  }
  dispatchEvent(new Event("language"));
}

// chooseLanguage is for a page that can be read in either: a button changes its language.
function chooseLanguage(button) {
  const choose = (language) => {
    speak(language);
    button.textContent = reader === "zh" ? "English" : "中文";
  };
  button.onclick = () => {
    choose(reader === "zh" ? "en" : "zh");
    store.set("zklock-language", reader);
  };
  const asked = new URLSearchParams(location.search).get("lang");
  const own = document.documentElement.dataset.language || (navigator.language.startsWith("zh") ? "zh" : "en");
  choose((asked ?? store.get("zklock-language") ?? own).startsWith("zh") ? "zh" : "en");
}
