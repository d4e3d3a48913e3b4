// The questions on a page of the book. They also work if the page was opened as a file, and if the
// browser stores nothing.

const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, text = "", properties = {}) =>
  Object.assign(document.createElement(tag), { textContent: text }, properties);

// ---- Questions ----

for (const question of all(".question")) {
  const key = "zklock-answer-" + question.dataset.key;
  const form = $("form", question), answer = $("details", question), yours = $(".yours", question);
  const numbers = all("[data-answer]", form), choices = all("[name=choice]", form), text = $("textarea", form);
  const after = $(`[data-after="${question.dataset.key}"]`);

  // veil hides the text that answers the question, or shows it again. The text is hidden until the
  // question is answered, or the reader asks for the text.
  function veil(hidden) {
    after?.classList.toggle("veiled", hidden);
    if (after && hidden && !$(":scope > .veil", after)) {
      const p = make("p", labels.veiled, { className: "veil" });
      p.append(make("button", labels.show, { type: "button", onclick: () => veil(false) }));
      after.prepend(p);
    } else if (!hidden) {
      after && $(":scope > .veil", after)?.remove();
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

  // compare shows what the reader has answered, and how far it is from the answer.
  function compare() {
    yours.replaceChildren();
    const line = (said, verdict, right) => {
      const p = make("span", `${labels.said}${said} `);
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

addEventListener("beforeprint", () => all("details").forEach((d) => { d.open = true; }));
