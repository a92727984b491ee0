// Decisions, remarks, undo, and what happens when two people met on one case.

// Why a decision cannot be taken as things are, "" when it can.
function cannot(decision) {
  const taken = E.base && C.facts.answers.some((one) => one.key === E.base.shown);
  if (unconfirmed(C.id)) return "Your last decision on this case is not saved yet. It is sent again by itself.";
  if (decision === "accept") {
    if (C.facts.hidden) return "Draw the box first, then show the answers.";
    if (C.notVisible) return "You said that the target is not visible: E saves that, V takes it back.";
    if (!E.box) return "This answer has no box to accept. Draw one, or say that the target is not visible.";
    if (changedBox() || !taken) return "This is not the answer's box any more: E saves yours, Z takes the change back.";
  }
  if (decision === "fix" && !C.notVisible) {
    if (!E.box) return "Draw the box first, or say that the target is not visible.";
    if (!changedBox() && taken) return "Nothing is changed: A accepts this box. To fix it, drag it, type numbers or draw a new one.";
  }
  if (decision === "reject" && C.facts.hidden) return "Show the answers first: there is nothing to reject yet.";
  return "";
}

function decide(decision) {
  if (!C.id || !C.facts) return;
  if (!mayDecide()) {
    askWho(() => openCase(C.id).then((ready) => ready && decide(decision)));
    return;
  }
  const problem = cannot(decision);
  if (problem) {
    note(problem, "warning");
    say(problem);
    return;
  }
  const fixed = decision === "fix" && !C.notVisible;
  const body = {
    decision, shown: E.base ? E.base.shown : "", box_before: E.base ? E.base.box : null, box_after: fixed ? E.box : null,
    frame_index: C.frame, frame_s: C.facts.clip ? secondsOf(C.frame) : null, best: C.best, confidence: C.confidence,
    not_visible: C.notVisible, question_unclear: C.unclear, tags: [...C.tags], comment: $("comment").value.trim(), point: E.point,
    seconds: spentSeconds(), blind: wish.blind, draw_first: wish.drawFirst && (C.facts.hidden || C.drewFirst === C.id),
  };
  keepDraft(); // taken up again should the decision be undone
  Object.assign(E, { past: [], future: [] }); // from here on, undo is about the decision
  done.push(C.id);
  act(C.id, "decided", body, C.facts.state.version, decision + ": " + C.facts.question.slice(0, 80));
  statusOf(C.id, "saving");
  openNext(1);
}

const spentSeconds = () => Math.round(Math.max(0, performance.now() - C.opened - C.hiddenMs) / 100) / 10;

function statusOf(id, status) {
  const line = $("cases").querySelector('[data-case="' + id + '"] .status');
  const item = Q.items.find((one) => one.case_id === id);
  if (item && status !== "saving") item.status = status;
  if (line) Object.assign(line, { textContent: status }).dataset.status = status;
}

// The server has written it.
function confirmed(entry, outcome) {
  const { case_id: id, kind } = entry.action;
  if (judging(kind)) statusOf(id, outcome.status);
  progressLater();
  if (id !== C.id || !C.facts) return;
  if (kind === "undone" || kind === "redone") openCase(id);
  else refreshCase();
}

let progressTimer = 0;

// The words on progress and pace, after a moment of rest; the list stays as it is.
function progressLater() {
  clearTimeout(progressTimer);
  progressTimer = setTimeout(async () => {
    const reply = await askServer("review_queue", { ...filterNow(), seed: Q.seed, offset: Q.offset, me: me.name, blind: wish.blind });
    if (reply.error) return;
    $("progress").textContent = reply.progress.words;
    choicesArrived(reply.choices);
  }, 400);
}

const mayUndo = () => Boolean(done.length || (C.facts && C.facts.state.undoable));
const mayRedo = () => Boolean(C.facts && C.facts.state.redoable);

// The decision on this case, else the last one taken on this page: its case opens and it is undone there.
async function undoDecision() {
  if (!C.facts || !C.facts.state.undoable) {
    const last = done.pop();
    if (!last) return say("There is nothing to undo.");
    if (unconfirmed(last)) {
      done.push(last);
      note("Your last decision is not saved yet. Undo it once it is.", "warning");
      return undefined;
    }
    if (!await openCase(last)) return undefined;
    if (!C.facts.state.undoable) return say("There is nothing to undo in this case.");
  }
  const at = done.lastIndexOf(C.id);
  if (at >= 0) done.splice(at, 1);
  return stepDecision("undone", "undo");
}

function redoDecision() {
  if (mayRedo()) stepDecision("redone", "redo");
}

function stepDecision(kind, title) {
  if (!mayDecide()) return askWho();
  if (unconfirmed(C.id)) return note("Your last step on this case is not saved yet.", "warning");
  act(C.id, kind, { target: 0 }, C.facts.state.version, title + ": " + C.facts.question.slice(0, 80));
  return undefined;
}

function addRemark() {
  const text = $("comment").value.trim();
  if (!C.id || !text) return note("Write the comment first.", "warning");
  if (!mayDecide()) return askWho(addRemark);
  act(C.id, "commented", { text, frame_index: S.index, frame_s: C.facts.clip ? secondsOf(S.index) : null, point: E.point }, 0, "comment");
  $("comment").value = "";
  E.point = null;
  keepDraft();
  drawSoon();
  return undefined;
}

function assignCase() {
  if (!C.id) return undefined;
  if (!mayDecide()) return askWho(assignCase);
  const to = $("assignee").value.trim();
  act(C.id, "assigned", { to }, 0, to ? "assign to " + to : "take the assignment back");
  return undefined;
}

// Someone was faster: both decisions are shown, and a person chooses.
function conflictArrived(entry, conflict) {
  const id = entry.action.case_id;
  statusOf(id, "conflict");
  note(conflict.words, "error");
  say(conflict.words);
  const open = make("button", "inline", "Show both");
  open.type = "button";
  open.addEventListener("click", () => openCase(id));
  if (id === C.id && C.facts) refreshCase();
  else $("notice").querySelector("span").append(" ", open);
}

function conflictsChanged() {
  $("conflicts").replaceChildren(...C.facts.conflicts.map(conflictPanel));
}

function conflictPanel(one) {
  const panel = make("div", "conflict");
  panel.append(make("h2", "", "Two decisions met"));
  const theirs = make("p");
  theirs.append(make("b", "", one.theirs ? one.theirs.by : "The case"), " " + (one.theirs ? one.theirs.words : "was changed") + " (holds now)");
  const late = make("p");
  late.append(make("b", "", one.by), " " + one.yours.words + " (came later)");
  const keepIt = make("button", "plain", one.theirs ? "Keep that of " + one.theirs.by : "Keep it as it is");
  keepIt.type = "button";
  keepIt.dataset.settle = "theirs";
  keepIt.addEventListener("click", () => settle("settled", { target: one.seq }));
  panel.append(theirs, late, keepIt);
  if (one.yours.judgement) {
    const take = make("button", "plain", "Take that of " + one.by);
    take.type = "button";
    take.dataset.settle = "yours";
    take.addEventListener("click", () => settle("decided", { ...one.yours.judgement, models: undefined, resolves: one.seq }));
    panel.append(" ", take);
  }
  return panel;
}

function settle(kind, body) {
  if (!mayDecide()) return askWho(() => settle(kind, body));
  if (unconfirmed(C.id)) return note("Your last step on this case is not saved yet.", "warning");
  act(C.id, kind, body, C.facts.state.version, "settle a conflict");
  return undefined;
}

function wireDecide() {
  for (const button of element.querySelectorAll("[data-decide]")) button.addEventListener("click", () => decide(button.dataset.decide));
  $("remark").addEventListener("click", addRemark);
  $("assign").addEventListener("click", assignCase);
}
