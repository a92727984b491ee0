// The open case: its frame, its answers, what the reviewer says of it.

const C = {
  id: "", facts: null, frame: 0, ticket: 0, shown: new Set(), notVisible: false, unclear: false, best: null, confidence: null,
  tags: new Set(), suggested: [], opened: 0, hiddenMs: 0, revealed: new Set(), rows: null, suggestTimer: 0,
};
const done = []; // cases decided on this page, last one last: undo goes back to them

async function openCase(id, again) {
  const ticket = ++C.ticket;
  const other = id !== C.id;
  C.id = id;
  markOpen();
  const hidden = wish.drawFirst && !C.revealed.has(id);
  const facts = await askServer("review_case", { case_id: id, me: me.name, blind: wish.blind, hidden, clips: window.refinerankClips || [] });
  if (ticket !== C.ticket) return false;
  if (facts.error) {
    note(facts.error, "error");
    return false;
  }
  if (hidden && facts.state.mine) {
    C.revealed.add(id);
    return openCase(id, again);
  }
  if (other) {
    note("");
    Object.assign(C, { opened: performance.now(), hiddenMs: 0 });
  }
  factsArrived(facts);
  C.shown = new Set(facts.answers.map((one) => one.key)); // the truth is shown when it is asked for
  restore();
  await pictureOf(facts);
  if (ticket !== C.ticket) return false;
  caseChanged();
  say("Case: " + facts.question + ", " + facts.state.status);
  return true;
}

function factsArrived(facts) {
  C.facts = facts;
  C.frame = facts.frame;
  C.rows = null;
  root.dataset.view = "case";
  $("empty").hidden = true;
}

// What changed on the server, without touching what is being edited here.
async function refreshCase() {
  const ticket = C.ticket;
  const facts = await askServer("review_case", { case_id: C.id, me: me.name, blind: wish.blind, hidden: C.facts.hidden, clips: window.refinerankClips || [] });
  if (ticket !== C.ticket || facts.error) return;
  factsArrived(facts);
  caseChanged();
}

// The picture of the asked frame, or an empty one where the video is not here.
async function pictureOf(facts) {
  const clip = facts.clip;
  const same = S.clip && clip && S.clip.token === clip.token;
  if (!same) {
    const table = clip ? timeTable(clip.times, clip.count) : { seconds: () => facts.requested_s || 0, nearest: () => 0, at: () => 0 };
    S.clip = { token: clip ? clip.token : "", title: clip ? clip.title : facts.video, count: clip ? clip.count : 1,
      width: facts.width, height: facts.height, ...table };
    S.image = null;
    S.index = -1;
    frames.reset(S.clip);
  }
  view.fitted = true;
  wanted = facts.frame;
  if (!clip) {
    show(facts.frame, blankFrame(facts));
    return;
  }
  try {
    show(facts.frame, await frames.get(facts.frame));
  } catch (error) {
    show(facts.frame, blankFrame(facts));
    note(error.message, "error");
  }
}

function blankFrame(facts) {
  const canvas = make("canvas");
  Object.assign(canvas, { width: facts.width, height: facts.height });
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#39424D";
  pen.fillRect(0, 0, facts.width, facts.height);
  pen.fillStyle = "#E7ECF2";
  pen.font = Math.max(12, Math.round(facts.width / 36)) + "px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.fillText("The video of this case is not here", facts.width / 2, facts.height / 2, facts.width * 0.9);
  return canvas;
}

// Start from the reviewer's own decision, else from what they had not finished, else from the answer.
function restore() {
  const { facts } = C;
  const first = facts.answers[0];
  startEdit(first ? { shown: first.key, box: first.box } : null);
  const mine = facts.state.mine;
  const draft = mine ? null : readDraft(C.id);
  const from = mine || draft || {};
  C.notVisible = Boolean(from.not_visible);
  C.unclear = Boolean(from.question_unclear);
  C.best = draft ? draft.best : null;
  C.confidence = from.confidence || null;
  C.tags = new Set(from.tags || []);
  C.suggested = [];
  $("comment").value = from.comment || "";
  E.point = draft ? draft.point || null : null;
  const decided = mine && facts.answers.find((one) => one.key === mine.shown);
  if (decided) E.base = { shown: decided.key, box: decided.box };
  if (draft && draft.base && facts.answers.length) E.base = draft.base;
  if (from.box) E.box = [...from.box];
}

const DRAFT = "refinerank-draft:";

function readDraft(id) {
  try {
    const draft = JSON.parse(kept(DRAFT + id));
    return draft && draft.blind === wish.blind ? draft : null;
  } catch {
    return null;
  }
}

function keepDraft() {
  if (!C.id || !C.facts) return;
  const draft = { box: E.box, base: E.base, not_visible: C.notVisible, question_unclear: C.unclear, best: C.best, confidence: C.confidence,
    tags: [...C.tags], comment: $("comment").value, point: E.point, blind: wish.blind, at: Date.now() };
  keep(DRAFT + C.id, JSON.stringify(draft));
  const old = keptKeys().filter((key) => key.startsWith(DRAFT));
  if (old.length <= 60) return;
  const age = (key) => JSON.parse(kept(key)).at || 0;
  old.sort((a, b) => age(a) - age(b)).slice(0, old.length - 60).forEach((key) => keep(key, null));
}

// Everything beside the picture.
function caseChanged() {
  const { facts } = C;
  $("question").textContent = facts.question;
  const asked = facts.requested_s === null ? "frame " + facts.frame : facts.requested_s.toFixed(2) + " s";
  const words = [facts.video, asked, facts.target && "target: " + facts.target, facts.dataset, facts.procedure];
  if (facts.margin !== null) words.push("margin " + short(facts.margin));
  $("about").textContent = words.filter(Boolean).join(" \u00b7 ");
  $("assignee").value = facts.state.assigned_to;
  answersChanged();
  bestChanged();
  flagsChanged();
  tagsChanged();
  historyChanged();
  conflictsChanged();
  numbersChanged();
  markOpen();
  drawSoon();
}

function markOpen() {
  for (const line of $("cases").querySelectorAll("button")) line.setAttribute("aria-current", line.dataset.case === C.id ? "true" : "false");
}

function answersChanged() {
  const { facts } = C;
  if (!facts) return;
  const taken = E.base && !changedBox() ? E.base.shown : "";
  const buttons = facts.answers.map((one) => {
    const button = make("button", "chip");
    button.type = "button";
    button.dataset.answer = one.key;
    button.setAttribute("aria-pressed", taken === one.key);
    if (one.role !== "blind") button.append(swatch(one.role));
    button.append(make("span", "", one.key + (one.role === "blind" ? "" : " " + one.label) + (one.box ? "" : ": no box")));
    button.title = one.label + (one.score == null ? "" : ", score " + figure(one.score, 2)) + ". Click to take it as your box.";
    button.addEventListener("click", () => takeBase({ shown: one.key, box: one.box }));
    return button;
  });
  if (facts.hidden) {
    const words = make("p", "hint", "Draw first: the " + facts.count + " answers stay hidden until you have drawn a box.");
    const reveal = make("button", "plain", "Show the answers");
    reveal.type = "button";
    reveal.dataset.id = "reveal";
    reveal.disabled = !E.box && !C.notVisible;
    reveal.addEventListener("click", revealAnswers);
    buttons.push(words, reveal);
  }
  if (facts.truth) buttons.push(layerButton("truth", "G truth"));
  const focus = document.activeElement && document.activeElement.dataset.answer;
  $("answers").replaceChildren(...buttons);
  if (focus) {
    const again = $("answers").querySelector('[data-answer="' + focus + '"]');
    if (again) again.focus();
  }
  $("pick").hidden = !facts.candidates;
  $("pickwords").textContent = E.base && E.base.shown.startsWith("candidate") ? E.base.shown + " is your box" : "by rank, then Enter";
}

function layerButton(name, words) {
  const button = make("button", "chip");
  button.type = "button";
  button.setAttribute("aria-pressed", C.shown.has(name));
  button.append(swatch(name), make("span", "", words));
  button.addEventListener("click", () => {
    if (C.shown.has(name)) C.shown.delete(name);
    else C.shown.add(name);
    answersChanged();
    drawSoon();
  });
  return button;
}

// In draw-first mode: the drawn box stays, the answers join it.
async function revealAnswers() {
  if (!E.box && !C.notVisible) return;
  const id = C.id;
  const mine = E.box;
  C.revealed.add(id);
  C.drewFirst = id;
  keepDraft();
  if (!await openCase(id)) return;
  Object.assign(E, { base: null, box: mine, past: [], future: [] });
  boxChanged();
}

function drawnNow() {
  if (C.facts.hidden) answersChanged();
}

async function pickCandidate() {
  const number = Number($("number").value);
  const id = C.id;
  if (!id || !number) return;
  const rows = C.rows || (await askServer("review_candidates", { case_id: id })).rows || [];
  if (id !== C.id) return;
  C.rows = rows;
  const row = rows.find((one) => one.rank === number);
  if (!row) {
    note(rows.length ? "There is no candidate " + number + ": this case has 1 to " + rows.length + "." : "This case has no candidates.", "warning");
    return;
  }
  const name = "candidate " + row.rank + " (#" + row.id + (row.refined ? " refined)" : " original)");
  takeBase({ shown: name, box: row.box });
  say(name + (row.phrase ? ", " + row.phrase : "") + ", score " + figure(row.score, 2));
}

function radios(home, values, now, choose) {
  const buttons = values.map(([value, words]) => {
    const button = make("button", "chip", words);
    button.type = "button";
    button.dataset.value = value;
    button.setAttribute("aria-pressed", value === now);
    button.addEventListener("click", () => {
      choose(value === now ? null : value);
      keepDraft();
      const again = home.querySelector('[data-value="' + value + '"]');
      if (again) again.focus();
    });
    return button;
  });
  home.replaceChildren(...buttons);
}

function bestChanged() {
  const keys = C.facts.answers.map((one) => [one.key, one.key]);
  const values = keys.length > 1 ? [...keys, ["tie", "tie"], ["none", "none"]] : [];
  radios($("best"), values, C.best, (value) => {
    C.best = value;
    bestChanged();
  });
  if (!values.length) $("best").append(make("span", "hint", C.facts.hidden ? "after you have drawn" : "only one answer"));
  radios($("confidence"), [1, 2, 3, 4, 5].map((one) => [one, String(one)]), C.confidence, (value) => {
    C.confidence = value;
    bestChanged();
  });
}

function flagsChanged() {
  $("notvisible").setAttribute("aria-pressed", C.notVisible);
  $("unclear").setAttribute("aria-pressed", C.unclear);
}

function flip(name) {
  if (!C.id) return;
  C[name] = !C[name];
  flagsChanged();
  answersChanged();
  keepDraft();
  drawSoon();
}

function tagsChanged() {
  const suggested = C.suggested.filter((tag) => !C.tags.has(tag));
  const all = [...props.tags.filter((tag) => !suggested.includes(tag)), ...[...C.tags].filter((tag) => !props.tags.includes(tag))];
  const focus = document.activeElement && document.activeElement.dataset.tag;
  $("taghint").textContent = suggested.length ? "dashed: suggested by your box" : "";
  const own = make("input");
  Object.assign(own, { type: "text", maxLength: 64, placeholder: "own tag" });
  own.setAttribute("aria-label", "A tag of your own");
  own.addEventListener("change", () => {
    if (own.value.trim()) toggleTag(own.value.trim());
  });
  $("tags").replaceChildren(...suggested.map((tag) => tagButton(tag, true)), ...all.map((tag) => tagButton(tag, false)), own);
  const again = focus && [...$("tags").querySelectorAll("[data-tag]")].find((one) => one.dataset.tag === focus);
  if (again) again.focus();
}

function tagButton(tag, suggested) {
  const button = make("button", suggested ? "chip quiet" : "chip", tag);
  button.type = "button";
  button.dataset.tag = tag;
  button.setAttribute("aria-pressed", C.tags.has(tag));
  button.addEventListener("click", () => toggleTag(tag));
  return button;
}

function toggleTag(tag) {
  if (C.tags.has(tag)) C.tags.delete(tag);
  else C.tags.add(tag);
  tagsChanged();
  keepDraft();
}

// Which tags would fit if the reviewer's box were right; they are offered, never set.
function suggestLater() {
  clearTimeout(C.suggestTimer);
  if (!C.id || !E.box || !changedBox() || C.facts.hidden) return;
  const [id, box] = [C.id, E.box];
  C.suggestTimer = setTimeout(async () => {
    const reply = await askServer("review_suggest", { case_id: id, box });
    if (id !== C.id || reply.error) return;
    C.suggested = reply.tags;
    tagsChanged();
  }, 600);
}

function historyChanged() {
  const lines = [...C.facts.history].reverse().map((one) => {
    const line = make("li");
    const time = one.at.slice(0, 16).replace("T", " ") + " UTC";
    const facts = [time, one.seconds ? one.seconds + " s" : "", one.blind ? "blind" : ""];
    line.append(make("b", "", one.by), " ", make("span", "", one.words), make("small", "", facts.filter(Boolean).join(" \u00b7 ")));
    return line;
  });
  $("history").replaceChildren(...lines);
}

function wireCase() {
  $("notvisible").addEventListener("click", () => flip("notVisible"));
  $("unclear").addEventListener("click", () => flip("unclear"));
  $("number").addEventListener("change", pickCandidate);
  $("comment").addEventListener("input", keepDraft);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) C.hiddenAt = performance.now();
    else if (C.hiddenAt) C.hiddenMs += performance.now() - C.hiddenAt;
  });
}
