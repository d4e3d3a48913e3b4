// A page in both languages. What stands in it from the beginning is put into the reader's
// language here: a text or an aria-label that is a key, and an element with its Chinese in
// data-zh, or data-zh-label. What the page's script writes it says by say, once more when
// it hears of "language".

(() => {
  chinese = JSON.parse(document.getElementById("words").textContent);

  const texts = []; // and their English
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = nodes.nextNode(); n; n = nodes.nextNode()) {
    if (n.data.trim() in chinese && !n.parentElement.closest("script, style, [translate=no], [data-zh]")) texts.push([n, n.data]);
  }
  const labels = [...document.querySelectorAll("[aria-label]:not([data-zh-label])")].map((e) => [e, e.ariaLabel]);

  function write() {
    for (const [n, en] of texts) n.data = en.replace(en.trim(), () => say(en.trim()));
    for (const [e, en] of labels) e.ariaLabel = say(en);
    for (const e of document.querySelectorAll("[data-zh]")) {
      e.dataset.en ??= e.textContent;
      e.textContent = e.dataset[reader];
    }
    for (const e of document.querySelectorAll("[data-zh-label]")) {
      e.dataset.enLabel ??= e.ariaLabel;
      e.ariaLabel = e.dataset[reader + "Label"];
    }
  }

  const button = document.getElementById("language");
  function choose(language) {
    reader = language;
    document.documentElement.lang = reader === "zh" ? "zh-CN" : "en";
    button.textContent = reader === "zh" ? "English" : "中文";
    write();
    dispatchEvent(new Event("language"));
  }
  button.onclick = () => {
    choose(reader === "zh" ? "en" : "zh");
    try { localStorage.setItem("language", reader); } catch { /* then it is not remembered */ }
  };
  let remembered;
  try { remembered = localStorage.getItem("language"); } catch { /* a file may have no storage */ }
  choose(remembered ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
})();
