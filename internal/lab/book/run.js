
// ---- Runs: recorded runs play in the text, phase by phase ----

reader = document.documentElement.lang === "en" ? "en" : "zh";

for (const figure of all(".herd")) showHerd($("div", figure), JSON.parse($("script", figure).textContent));

// LANES is how many clients a strip of lanes has room for.
const LANES = 5;

for (const figure of all(".run")) {
  const stories = JSON.parse($("script", figure).textContent);
  stories.forEach((story) => ready(story));
  const stages = all(".stage-of", figure).map((root, i) => {
    const stage = new Stage(root);
    const named = (name) => text($(name, root).textContent, $(name, root).textContent);
    stage.show(stories[i], named(".step"), named(".lesson"));
    return stage;
  });
  const times = clock(stories);
  const lanes = stories[0].clients.length <= LANES ? stages.map((stage, i) => {
    const lane = make("canvas", "", { className: "strip", ariaHidden: "true" }); // the caption and the steps say it
    lane.onpointerdown = lane.onpointermove = (e) => e.buttons === 1 && go(times.length * shareAt(lane, e));
    lane.style.height = `${stripHeight(stories[i])}px`;
    stage.canvas.after(lane);
    return lane;
  }) : [];
  let now = times.phases[0].lasts, playing = 0, seen = 0; // at the end of the first phase; seen is how far it was shown

  const middle = (i, { from, to }) => times.shown(i, (from + to) / 2);
  const moments = stories.flatMap((story, i) => [...story.frames.map((frame) => ({ at: middle(i, frame), story, frame })),
    ...story.writes.map((write) => ({ at: middle(i, write), story, write }))]).sort((a, b) => a.at - b.at);
  let focus = null; // the message, or the write to the store, that a step has stopped at

  function draw() {
    const p = times.phaseAt(now);
    stages.forEach((stage, i) => {
      const of = stories[i].phases[Math.min(p, stories[i].phases.length - 1)], over = now >= times.over(i, p);
      const caption = $(".caption", stage.root);
      if (stage.radius) stage.draw(times.recorded(i, now), focus?.story === stories[i] ? focus.frame ?? null : null); // else it has no size yet
      const said = over && of.sum.en ? say(of.sum) : phaseTitle(of) + say(".", "。");
      if (caption.textContent !== said) caption.textContent = said;
    });
    const ticks = times.phases.slice(1).map((phase) => phase.at / times.length);
    seen = Math.max(seen, now);
    lanes.forEach((lane, i) => {
      if (!stages[i].radius) return;
      lane.drawn = drawStrip(lane, stories[i], (t) => times.shown(i, t) / times.length, now / times.length, ticks);
      const end = STRIP.left(lane) + wide(lane) * seen / times.length + 2;
      lane.getContext("2d").clearRect(end, 0, lane.clientWidth - end, lane.clientHeight); // what comes is not told before it was shown
    });
    slider.value = now;
    toggle.textContent = isPlaying ? "❚❚" : "▶";
    toggle.ariaLabel = isPlaying ? say("Pause", "暂停") : say("Play", "播放");
    const side = focus && stages.length > 1 ? (focus.story === stories[0] ? say("left: ", "左边：") : say("right: ", "右边：")) : "";
    const said = !focus ? "" : side + (focus.write ? capital(writeSentence(focus.write)) : sentence(focus.story, focus.frame));
    if (detail.textContent !== said) detail.textContent = said;
    buttons.forEach((button, i) => button.setAttribute("aria-current", i === p ? "step" : "false"));
  }

  // play shows a phase from its beginning to its end. If the reader prefers no motion, it shows
  // only the end.
  function play(p) {
    const phase = times.phases[p];
    run(still.matches ? phase.at + phase.lasts : phase.at, phase.at + phase.lasts);
  }

  // run plays from one moment to another.
  function run(from, end) {
    const mine = ++playing;
    now = from;
    focus = null;
    isPlaying = true;
    let last;
    const tick = (time) => {
      if (mine !== playing) return;
      now = Math.min(end, now + (last === undefined ? 0 : time - last));
      last = time;
      isPlaying = now < end;
      draw();
      if (isPlaying) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  // go stops at a moment. If a step has led there, of is the message at which it has stopped.
  function go(at, of = null) {
    playing++;
    isPlaying = false;
    now = Math.min(times.length, Math.max(0, at));
    focus = of;
    draw();
  }

  // step goes to the next message, or to the one before.
  function step(by) {
    let i = focus ? moments.indexOf(focus) + by : by > 0 ? moments.findIndex((m) => m.at > now) : moments.findLastIndex((m) => m.at < now);
    if (i >= moments.length || i < 0 && by > 0) return go(times.length);
    i < 0 ? go(0) : go(moments[i].at, moments[i]);
  }

  let isPlaying = false;
  const toggle = make("button", "▶", { type: "button", onclick: () => isPlaying ? go(now) : run(now >= times.length ? 0 : now, times.length) });
  const slider = make("input", "", { type: "range", min: 0, max: Math.round(times.length), step: 1, ariaLabel: say("Moment", "时刻"), oninput: () => go(Number(slider.value)) });
  const detail = make("p", "", { className: "detail" });
  detail.setAttribute("role", "status");
  const controls = make("div", "", { className: "controls" });
  controls.append(toggle, make("button", "◀", { type: "button", ariaLabel: say("One message back", "后退一条消息"), onclick: () => step(-1) }),
    slider, make("button", "▶|", { type: "button", ariaLabel: say("One message on", "前进一条消息"), onclick: () => step(1) }));
  $(".stages-of", figure).after(controls, detail);

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
  addEventListener("resize", fits); // the colours may have changed
  addEventListener("beforeprint", () => go(times.length));
}
