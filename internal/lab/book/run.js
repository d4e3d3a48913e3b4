
// ---- Runs: what was recorded plays in the text, phase by phase ----

reader = document.documentElement.lang === "en" ? "en" : "zh";

for (const figure of all(".run")) {
  const stories = JSON.parse($("script", figure).textContent);
  stories.forEach(ready);
  const stages = all(".stage-of", figure).map((root, i) => {
    const stage = new Stage(root);
    const named = (name) => text($(name, root).textContent, $(name, root).textContent);
    stage.show(stories[i], named(".step"), named(".lesson"));
    return stage;
  });
  const times = clock(stories);
  let now = times.phases[0].lasts, playing = 0; // at the end of the first phase

  function draw() {
    const p = times.phaseAt(now), phase = times.phases[p];
    stages.forEach((stage, i) => {
      const own = phase.bends[i], of = stories[i].phases[Math.min(p, stories[i].phases.length - 1)];
      const over = now >= phase.at + phase.lasts || (now - phase.at) / phase.slow >= own.length;
      const caption = $(".caption", stage.root);
      stage.draw(times.recorded(i, now), null);
      const said = over && of.sum.en ? say(of.sum) : phaseTitle(of) + say(".", "。");
      if (caption.textContent !== said) caption.textContent = said;
    });
    buttons.forEach((button, i) => button.setAttribute("aria-current", i === p ? "step" : "false"));
  }

  // play shows a phase from its beginning to its end. Who wants nothing to move sees the end.
  function play(p) {
    const phase = times.phases[p], end = phase.at + phase.lasts, mine = ++playing;
    now = still.matches ? end : phase.at;
    let last;
    const tick = (time) => {
      if (mine !== playing) return;
      now = Math.min(end, now + (last === undefined ? 0 : time - last));
      last = time;
      draw();
      if (now < end) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  const buttons = stories[0].phases.map((phase, p) =>
    make("button", `▶ ${p + 1}. ${phaseTitle(phase)}`, { type: "button", onclick: () => play(p) }));
  $(".phases", figure).append(...buttons);
  const fits = () => {
    if (!figure.getBoundingClientRect().width) return; // it is hidden
    for (const stage of stages) {
      stage.largest = 1.3;
      stage.size();
    }
    draw();
  };
  new ResizeObserver(fits).observe(figure);
  addEventListener("resize", fits); // other colours, too
}
