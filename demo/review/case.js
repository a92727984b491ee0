// The open case: its frame, its answers, what the reviewer says of it.

const C = {
  id: "", facts: null, frame: 0, ticket: 0, shown: new Set(), notVisible: false, unclear: false, best: null, confidence: null,
  tags: new Set(), suggested: [], opened: 0, hiddenMs: 0, revealed: new Set(), rows: null, suggestTimer: 0,
};
const done = []; // cases decided on this page, last one last: undo goes back to them

async function openCase(id) {
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
    return openCase(id);
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
  $("forget").hidden = !facts.kept;
  if (!clip) {
    show(facts.frame, facts.kept ? await keptPicture(facts) : blankFrame(facts));
    return;
  }
  try {
    show(facts.frame, await frames.get(facts.frame));
  } catch (error) {
    show(facts.frame, blankFrame(facts));
    note(error.message, "error");
  }
}

// The one frame that its reviewer asked to keep.
async function keptPicture(facts) {
  const reply = await askServer("review_picture", { case_id: facts.case_id });
  const image = new Image();
  try {
    if (reply.error) throw new Error(reply.error);
    image.src = reply.src;
    await image.decode();
    return image;
  } catch (error) {
    note(error.message, "error");
    return blankFrame(facts);
  }
}

async function forgetPicture() {
  const id = C.id;
  if (!mayDecide()) return askWho(forgetPicture);
  const reply = await askServer("review_forget", { case_id: id, who: me.who() });
  note(reply.error || reply.words, reply.error ? "error" : "info");
  if (!reply.error && id === C.id) await openCase(id);
  return undefined;
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
  const step = Math.max(16, Math.round(facts.width / 26));
  const lines = ["The video of this case is not here.", "Upload it again in Explore, or start the page with --videos and its folder.", "The boxes lie where they were."];
  lines.forEach((words, at) => pen.fillText(words, facts.width / 2, facts.height / 2 + (at - 1) * step, facts.width * 0.9));
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
  const rows = C.rows || (await askServer("review_candidates", { case_id: id, blind: wish.blind })).rows || [];
  if (id !== C.id) return;
  C.rows = rows;
  const row = rows.find((one) => one.rank === number);
  if (!row) {
    note(rows.length ? "There is no candidate " + number + ": this case has 1 to " + rows.length + "." : "This case has no candidates.", "warning");
    return;
  }
  const name = "candidate " + row.rank + (row.id ? " (#" + row.id + (row.refined ? " refined)" : " original)") : " from the left");
  takeBase({ shown: name, box: row.box });
  say(name + (row.phrase ? ", " + row.phrase : "") + (row.score == null ? "" : ", score " + figure(row.score, 2)));
}

function wireCase() {
  $("notvisible").addEventListener("click", () => flip("notVisible"));
  $("unclear").addEventListener("click", () => flip("unclear"));
  $("number").addEventListener("change", pickCandidate);
  $("forget").addEventListener("click", forgetPicture);
  $("comment").addEventListener("input", keepDraft);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) C.hiddenAt = performance.now();
    else if (C.hiddenAt) C.hiddenMs += performance.now() - C.hiddenAt;
  });
}
