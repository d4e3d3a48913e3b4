// The language of a page. An element that is in the page from the start has its Chinese text beside
// it, in data-zh or data-zh-label. A script writes its texts with say, and writes them again at the
// event "language". The language is that of the address, as in ?lang=zh. If the address has none,
// it is the reader's last choice, then the language that the page was made with, then that of the
// browser.

let reader = "en";

// say returns a text in the reader's language. It takes a text of Go, {en, zh}, or the two
// versions.
function say(en, zh) {
  if (typeof en === "object") return en[reader];
  return reader === "zh" ? zh : en;
}

// speak switches the page to a language.
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

// chooseLanguage is for a page that has both languages. It sets the language with which the page
// begins, and makes a button switch it.
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
