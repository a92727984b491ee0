// Stepping, scrubbing, playing; where the requested times lie.

let playing = 0;

function transportMoved(index) {
  $("scrub").value = index;
  const shot = S.clip && S.clip.shots && S.clip.shots.includes(index) ? ", a new shot" : "";
  $("scrub").setAttribute("aria-valuetext", "frame " + index + ", " + secondsOf(index).toFixed(3) + " seconds" + shot);
  if (document.activeElement !== $("number")) $("number").value = index;
  if (document.activeElement !== $("pts")) $("pts").value = secondsOf(index).toFixed(3);
  drawLanes(index);
}

function transportChanged() {
  const count = S.clip ? S.clip.count : 1;
  $("scrub").max = count - 1;
  $("number").max = count - 1;
  $("count").textContent = "/ " + (count - 1);
  for (const field of $("transport").querySelectorAll("button, input, select")) field.disabled = !S.clip;
  legendChanged();
  drawLanes();
}

// Shot changes are looked for when the first view stands; the search may take a while.
function wantShots(clip, wait) {
  clip.shots = null;
  setTimeout(async () => {
    if (S.clip !== clip) return;
    const reply = await askServer("shots", { clip: clip.token });
    if (S.clip !== clip) return;
    if (reply.shots === null) {
      wantShots(clip, 3000); // another clip is being searched
      return;
    }
    clip.shots = reply.shots || [];
    legendChanged();
    drawLanes();
  }, wait);
}

function legendChanged() {
  const cuts = Boolean(S.clip && S.clip.shots && S.clip.shots.length);
  const marks = [["asked", "requested time", Boolean(S.clip)], ["reviewed", "reviewed", S.human.size > 0], ["cut", "shot change", cuts]];
  $("legend").replaceChildren(...marks.filter((one) => one[2]).map(([name, words]) => make("span", "mark " + name, words)));
}

// One lane a method with a tick at each answered frame; requested times as marks below.
function drawLanes(index) {
  const canvas = $("lanes");
  const { pen, width, height } = prepare(canvas);
  if (!S.clip) return;
  const at = index === undefined ? wanted : index;
  const x = (frame) => 8 + (S.clip.count > 1 ? frame / (S.clip.count - 1) : 0) * (width - 16);
  const ink = getComputedStyle(root);
  pen.fillStyle = ink.getPropertyValue("--lane");
  for (const lane of [0, 1, 2]) pen.fillRect(8, 3 + lane * 6, width - 16, 2);
  pen.fillStyle = ink.getPropertyValue("--soft");
  for (const frame of S.clip.shots || []) {
    for (let y = 0; y < height; y += 4) pen.fillRect(x(frame) - 0.5, y, 1, 2);
  }
  const times = S.answer ? S.answer.times : [];
  const lanes = [["refinerank", ROLES.rank.color], ["medvlm", ink.getPropertyValue("--yellow")], ["detector", ROLES.detector.color]];
  lanes.forEach(([name, color], lane) => {
    pen.fillStyle = color;
    for (const time of times) {
      if (time[name].box) pen.fillRect(x(time.frame) - 2, 1 + lane * 6, 4, 5);
    }
  });
  pen.fillStyle = ink.getPropertyValue("--accent");
  for (const second of requestedNow()) {
    const place = x(S.clip.nearest(second));
    pen.beginPath();
    pen.moveTo(place, height - 8);
    pen.lineTo(place - 4, height);
    pen.lineTo(place + 4, height);
    pen.fill();
  }
  pen.fillStyle = ink.getPropertyValue("--ink");
  for (const frame of S.human.keys()) pen.fillRect(x(frame) - 2.5, 19, 5, 5);
  pen.fillRect(x(at) - 0.75, 0, 1.5, height);
}

// Pictures of the requested times; shown when there are several.
function timesChanged() {
  const row = $("times");
  const times = S.answer ? S.answer.times : [];
  row.hidden = times.length < 2;
  root.dataset.times = times.length > 1 ? "many" : "one";
  const token = S.answer ? S.answer.token : "";
  if (row.dataset.token !== token) row.replaceChildren();
  row.dataset.token = token;
  row.append(...times.slice(row.children.length, 64).map(timeButton)); // more come while a question runs
  for (const button of row.children) {
    const on = S.k !== null && Number(button.dataset.k) === S.k;
    button.setAttribute("aria-current", on ? "true" : "false");
    if (on) scrollInRow(row, button);
  }
}

// Bring a button of a row into sight without moving the page.
function scrollInRow(row, button) {
  const [outer, inner] = [row.getBoundingClientRect(), button.getBoundingClientRect()];
  if (inner.left < outer.left) row.scrollLeft -= outer.left - inner.left;
  else if (inner.right > outer.right) row.scrollLeft += inner.right - outer.right;
}

function timeButton(time) {
  const button = make("button", "shot");
  button.type = "button";
  button.dataset.k = time.k;
  const picture = make("canvas");
  button.append(picture, make("span", "", time.frame_s.toFixed(2) + " s"));
  button.addEventListener("click", () => go(time.frame));
  const token = S.clip.token;
  frames.get(time.frame).then((image) => {
    if (!image || !S.clip || S.clip.token !== token) return;
    const { pen, width, height } = prepare(picture);
    const whole = fitView(width, height);
    paintFrame(pen, whole, image);
    paintBox(pen, whole, time.refinerank.box, { ...ROLES.rank, tag: "", width: 1.5 });
  }).catch(() => null);
  return button;
}

function play() {
  if (playing || !S.clip) return stopPlaying();
  const from = wanted >= S.clip.count - 1 ? 0 : wanted;
  const start = { wall: performance.now(), time: secondsOf(from) };
  $("play").textContent = "\u2759\u2759";
  $("play").setAttribute("aria-label", "Pause");
  const tick = () => {
    const passed = ((performance.now() - start.wall) / 1000) * Number($("rate").value);
    const due = S.clip ? S.clip.at(start.time + passed) : 0;
    if (!S.clip || due >= S.clip.count - 1) {
      go(S.clip ? S.clip.count - 1 : 0);
      return stopPlaying();
    }
    if (due !== wanted) go(due); // frames that are late are dropped, the clock goes on
    playing = requestAnimationFrame(tick);
    return undefined;
  };
  go(from);
  playing = requestAnimationFrame(tick);
  return undefined;
}

function stopPlaying() {
  cancelAnimationFrame(playing);
  playing = 0;
  $("play").textContent = "\u25b6";
  $("play").setAttribute("aria-label", "Play");
}

function step(what) {
  if (!S.clip) return;
  if (what === "play") {
    play();
    return;
  }
  stopPlaying();
  if (what === "first") go(0);
  else if (what === "last") go(S.clip.count - 1);
  else go(wanted + Number(what));
}

// "12.5", "1:05" or "1:02:03.5" as seconds, NaN when it is none of these.
function readSeconds(text) {
  const parts = text.trim().replace(/\s*s$/, "").split(":");
  if (!parts.length || parts.length > 3 || !parts.every((part) => /^\d+(\.\d+)?$/.test(part.trim()))) return NaN;
  return parts.reduce((sum, part) => sum * 60 + Number(part), 0);
}

function wireTransport() {
  for (const button of element.querySelectorAll("[data-step]")) {
    button.addEventListener("click", () => step(button.dataset.step));
  }
  $("scrub").addEventListener("input", (event) => {
    stopPlaying();
    go(Number(event.target.value));
  });
  $("number").addEventListener("change", (event) => {
    if (event.target.value !== "" && Number.isFinite(Number(event.target.value))) go(Number(event.target.value));
    event.target.value = wanted;
  });
  $("pts").addEventListener("change", (event) => {
    const seconds = readSeconds(event.target.value);
    if (Number.isNaN(seconds)) say("That is not a time. Write seconds or minutes:seconds.");
    else go(S.clip.nearest(seconds));
    event.target.value = secondsOf(wanted).toFixed(3);
  });
}
