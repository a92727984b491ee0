// The question: what it names, when it is about, how far its answer is.

const A = { read: [], target: "", own: null, error: "", timer: 0, started: 0, clock: 0, ticket: 0, smooth: false, cost: null,
  examples: false, opening: false, asked: "", total: 1 };

const STAGE_WORDS = {
  query: "Question", frames: "Frames", encode: "Look", detect: "Detect", rank: "Rank", answer: "Direct answer", maps: "Maps",
};

// The times that a click on Ask would request.
function requestedNow() {
  if (!S.clip) return [];
  if (A.own) return A.own;
  if (A.read.length) return A.read;
  return S.answer && S.answer.text === $("question").value.trim() ? S.answer.times.map((time) => time.requested_s) : [];
}

function questionTyped() {
  clearTimeout(A.timer);
  A.timer = setTimeout(readQuestion, 250);
}

async function readQuestion() {
  const text = $("question").value.trim();
  if (!S.clip || !text) {
    Object.assign(A, { read: [], target: "", error: "" });
    chipsChanged();
    return;
  }
  const token = S.clip.token;
  const reply = await askServer("read", { clip: token, text });
  if (!S.clip || S.clip.token !== token || $("question").value.trim() !== text) return;
  Object.assign(A, { read: reply.times || [], target: reply.target || "", error: reply.error || "", cost: reply.per_time_s });
  chipsChanged();
}

function chipsChanged() {
  const row = $("chips");
  row.replaceChildren();
  if (!S.clip) return;
  const text = $("question").value.trim();
  if (A.error) row.append(make("span", "fault", A.error));
  else if (S.clip.questions.length && (A.examples || !text)) exampleChips(row, text);
  else if (text) timeChips(row);
  else row.append(make("span", "hint", "Times in the question (at 0:02; from 1 to 5 seconds) are read as you type; without one, the frame you are on is asked."));
  drawLanes();
}

function quietChip(words, act) {
  const chip = make("button", "chip quiet", words);
  chip.type = "button";
  chip.addEventListener("click", act);
  return chip;
}

function showExamples(shown) {
  A.examples = shown;
  chipsChanged();
  $("chips").querySelector("button").focus();
}

function exampleChips(row, text) {
  if (text) row.append(quietChip("Back", () => showExamples(false)));
  row.append(make("span", "lead", "Try"));
  const shown = S.clip.questions.slice(0, 6);
  const start = sharedStart(shown);
  for (const one of shown) row.append(exampleChip(one, gist(one.slice(start))));
}

// A long question says what it asks in its last sentence.
function gist(text) {
  return text.length > 60 ? text.split(/(?<=[.?!])\s+(?=\p{Lu})/u).pop() : text;
}

// Where the sentences end that all of several questions begin with.
function sharedStart(texts) {
  if (texts.length < 2) return 0;
  let same = 0;
  while (same < texts[0].length && texts.every((one) => one[same] === texts[0][same])) same += 1;
  const end = texts[0].slice(0, same).lastIndexOf(". ");
  return end < 0 ? 0 : end + 2;
}

function exampleChip(text, words) {
  const stored = S.clip.stored.includes(text);
  const chip = make("button", "chip example");
  chip.type = "button";
  chip.title = text;
  chip.append(make("span", "", words));
  if (stored) chip.append(make("small", "", "answered"));
  chip.setAttribute("aria-label", text + (stored ? " (answered)" : ""));
  chip.addEventListener("click", () => {
    $("question").value = text;
    Object.assign(A, { own: null, examples: false });
    readQuestion();
    if (stored) openStored(text);
    else $("question").focus();
  });
  return chip;
}

// The answer that is kept with the clip comes at once; nothing is computed.
function openStored(text) {
  $("view").focus({ preventScroll: true });
  if (storedNow()) {
    go(S.answer.times[S.answer.first].frame);
    return;
  }
  A.opening = true;
  trigger("open_stored", { clip: S.clip.token, text });
}

// Whether the answer on the screen is a kept one, to the question in the box.
const storedNow = () => Boolean(S.answer && S.answer.stored && S.answer.text === $("question").value.trim() && !A.own);

function timeChips(row) {
  const times = A.own || A.read;
  if (S.clip.questions.length) row.append(quietChip("Examples", () => showExamples(true)));
  if (storedNow()) {
    const again = make("button", "chip", "Run it now");
    again.type = "button";
    again.addEventListener("click", () => {
      if (!A.read.length) A.own = S.answer.times.map((time) => time.requested_s);
      submitQuestion();
    });
    row.append(make("span", "chip stored", "Stored answer"), again);
  }
  row.append(make("span", "lead", "At"));
  if (!times.length) row.append(make("span", "chip still", "this frame, " + secondsOf(wanted).toFixed(3) + " s"));
  times.slice(0, 12).forEach((second, at) => row.append(timeChip(second, at)));
  if (times.length > 12) row.append(make("span", "chip still", "and " + (times.length - 12) + " more"));
  row.append(quietChip("+ this frame", () => ownTimes([...times, secondsOf(wanted)])));
  if (A.own) row.append(quietChip("as the question says", () => ownTimes(null)));
  if (times.length > 1) row.append(smoothChip());
  const seconds = A.cost ? Math.max(1, Math.round(A.cost * Math.max(1, times.length))) : 0;
  if (seconds) row.append(make("span", "lead end", "about " + seconds + " s"));
  if (A.target) row.append(make("span", "lead end", "looking for: " + A.target));
}

function timeChip(second, at) {
  const chip = make("span", "chip time");
  const field = make("input");
  field.value = String(Number(second.toFixed(3)));
  field.style.width = Math.max(2, field.value.length) + 0.5 + "ch";
  field.addEventListener("input", () => { field.style.width = Math.max(2, field.value.length) + 0.5 + "ch"; });
  field.setAttribute("aria-label", "Requested time " + (at + 1) + " in seconds");
  field.addEventListener("change", () => {
    const value = readSeconds(field.value);
    const times = [...(A.own || A.read)];
    if (Number.isNaN(value) || value > S.clip.duration_s) {
      say("That time is not in the clip.");
      field.value = String(Number(second.toFixed(3)));
      return;
    }
    times[at] = value;
    ownTimes(times);
  });
  const drop = make("button", "", "\u00d7");
  drop.type = "button";
  drop.setAttribute("aria-label", "Remove time " + field.value);
  drop.addEventListener("click", () => ownTimes((A.own || A.read).filter((_, place) => place !== at)));
  chip.append(field, " s", drop);
  return chip;
}

function smoothChip() {
  const chip = make("label", "chip quiet");
  const box = make("input");
  box.type = "checkbox";
  box.checked = A.smooth;
  box.addEventListener("change", () => { A.smooth = box.checked; });
  chip.append(box, " steady over time");
  chip.title = "Temporal shape smoothing: choose boxes so that they do not jump from time to time";
  return chip;
}

function ownTimes(times) {
  A.own = times && times.length ? [...new Set(times)].sort((a, b) => a - b) : null;
  chipsChanged();
}

function submitQuestion() {
  if (S.busy) return;
  if (!S.clip) {
    noClip();
    return;
  }
  const text = $("question").value.trim();
  if (!text) {
    note("Write a question first.", "error");
    $("question").focus();
    return;
  }
  note("");
  setBusy(true);
  A.started = performance.now();
  A.asked = text;
  A.ticket = Math.floor(Math.random() * 2147483647);
  runningChanged({ state: "waiting", stages: [], total: 1, left_s: null });
  trigger("submit", { clip: S.clip.token, text, times: A.own, index: S.index, ticket: A.ticket, variant: V.chosen,
    smooth: A.smooth });
}

function setBusy(busy) {
  S.busy = busy;
  root.dataset.busy = busy ? "yes" : "no";
  $("go").hidden = busy;
  $("stop").hidden = !busy;
  $("stop").disabled = false;
  $("running").hidden = !busy;
  $("chips").hidden = busy;
  clearInterval(A.clock);
  if (busy) A.clock = setInterval(tickClock, 200);
}

function progressArrived() {
  const facts = plain(props.progress);
  if (!facts || !facts.state) return;
  if (facts.state === "outside") {
    askOutside(facts);
    return;
  }
  if (facts.state === "dropped") {
    uploadDropped(facts);
    return;
  }
  if (facts.state === "unstored") {
    A.opening = false;
    return;
  }
  if (["done", "failed", "stopped"].includes(facts.state)) {
    setBusy(false);
    if (facts.state === "stopped") {
      note(facts.words, "warning");
      say(facts.words);
    }
    if (facts.state === "failed") {
      if (root.dataset.uploading === "yes") note("");
      root.dataset.uploading = "no";
    }
    chipsChanged();
    return;
  }
  if (S.busy) runningChanged(facts);
}

function runningChanged(facts) {
  A.total = facts.total;
  const row = $("running");
  row.replaceChildren();
  const next = facts.stages.findIndex((one) => one.done < facts.total);
  facts.stages.forEach((one, at) => {
    const dot = make("span", "stagedot" + (one.done >= facts.total ? " done" : at === next ? " now" : ""), STAGE_WORDS[one.name] || one.name);
    if (facts.total > 1 && one.done < facts.total) dot.append(make("small", "", " " + one.done + "/" + facts.total));
    row.append(dot);
  });
  const words = { waiting: "Waiting for the models", stopping: "Stopping after this stage" }[facts.state];
  if (words) row.append(make("span", "lead", words));
  const left = make("span", "clock");
  left.dataset.due = facts.left_s == null ? "" : performance.now() + facts.left_s * 1000;
  row.append(left);
  tickClock();
  if (next >= 0 && facts.total === 1) say(STAGE_WORDS[facts.stages[next].name] || facts.stages[next].name);
}

function tickClock() {
  const clock = $("running").querySelector(".clock");
  if (!clock) return;
  const passed = ((performance.now() - A.started) / 1000).toFixed(1) + " s";
  const due = clock.dataset.due ? Math.max(0, (Number(clock.dataset.due) - performance.now()) / 1000) : null;
  clock.textContent = due === null ? passed : passed + ", about " + Math.ceil(due) + " s left";
}

function wireAsk() {
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    submitQuestion();
  });
  $("question").addEventListener("input", () => {
    Object.assign(A, { own: null, examples: false });
    questionTyped();
  });
  $("stop").addEventListener("click", () => {
    $("stop").disabled = true;
    trigger("cancel", { ticket: A.ticket });
  });
}
