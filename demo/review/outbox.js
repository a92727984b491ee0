// Actions until they are confirmed: each lies in local storage under a key of its own, is sent until
// the server has an outcome for it, and is written once there however often it is sent.

const KEPT = "refinerank-act:";
const outbox = { busy: false, again: false, timer: 0, pause: 2000, trouble: "" };

function waiting() {
  const read = (key) => {
    try {
      return JSON.parse(kept(key));
    } catch {
      return null;
    }
  };
  return keptKeys().filter((key) => key.startsWith(KEPT)).map(read)
    .filter((one) => one && one.action).sort((a, b) => a.at - b.at);
}

const storeEntry = (entry) => keep(KEPT + entry.action.client_id, JSON.stringify(entry));
const dropEntry = (entry) => keep(KEPT + entry.action.client_id, null);

function newId() {
  const words = crypto.getRandomValues(new Uint32Array(4));
  return "web-" + [...words].map((word) => word.toString(16).padStart(8, "0")).join("");
}

// Keep an action, then send it. title: what it is, for people.
function act(caseId, kind, body, basedOn, title) {
  const action = { client_id: newId(), case_id: caseId, by: me.name, kind, based_on: basedOn, body };
  storeEntry({ action, title, at: Date.now(), error: "", stuck: false });
  outbox.pause = 2000;
  flush();
}

const judging = (kind) => ["decided", "undone", "redone"].includes(kind);

// An action on this case that is not confirmed yet: the next judgement has to wait for it.
const unconfirmed = (caseId) => waiting().some((one) => one.action.case_id === caseId && judging(one.action.kind) && !one.stuck);

async function flush() {
  clearTimeout(outbox.timer);
  if (outbox.busy) {
    outbox.again = true;
    return;
  }
  const entries = waiting().filter((one) => !one.stuck).slice(0, 100);
  if (!entries.length) {
    outbox.trouble = "";
    savedChanged();
    return;
  }
  outbox.busy = true;
  savedChanged();
  const reply = await askServer("review_act", { token: me.token, blind: wish.blind, actions: entries.map((one) => one.action) });
  outbox.busy = false;
  outbox.trouble = reply.error || "";
  if (!reply.error) entries.forEach((entry, place) => outcomeArrived(entry, reply.outcomes[place]));
  savedChanged();
  const left = waiting().some((one) => !one.stuck);
  if (outbox.again || (left && !outbox.trouble)) {
    outbox.again = false;
    outbox.timer = setTimeout(flush, 50);
  } else if (left) {
    outbox.timer = setTimeout(flush, outbox.pause);
    outbox.pause = Math.min(15000, outbox.pause * 1.5);
  }
}

function outcomeArrived(entry, outcome) {
  if (outcome.ok) {
    dropEntry(entry);
    confirmed(entry, outcome);
  } else if (outcome.conflict) {
    dropEntry(entry);
    conflictArrived(entry, outcome.conflict);
  } else {
    const known = entry.error === outcome.error;
    Object.assign(entry, { error: outcome.error, stuck: Boolean(outcome.stuck) });
    storeEntry(entry);
    outbox.trouble = outcome.error;
    if (known) return;
    if (outcome.login) askWho();
    else note("Not saved yet: " + outcome.error, "error");
  }
}

// Always visible: is everything that was done here written there?
function savedChanged() {
  const all = waiting();
  const stuck = all.filter((one) => one.stuck).length;
  const chip = $("saved");
  const words = !all.length ? "All saved" : outbox.busy && !outbox.trouble ? "Saving " + all.length
    : all.length + " not saved yet";
  if (chip.textContent !== words) chip.textContent = words;
  chip.title = all.length ? (outbox.trouble || all[0].error || "On its way.") + " Kept in this browser until then." : "Every decision is confirmed by the server.";
  element.querySelector(".decide").dataset.words = words; // on narrow pages the chip may be out of sight
  root.dataset.saved = !all.length ? "yes" : outbox.busy && !outbox.trouble && !stuck ? "busy" : "no";
}

function showWaiting() {
  const all = waiting();
  const parts = [make("p", "", all.length ? "These wait in this browser. They are sent again by themselves, once each, also after a restart." : "Everything you did is confirmed by the server.")];
  const list = make("ul", "waitlist");
  for (const entry of all) {
    const line = make("li", "", entry.title + (entry.error ? ": " + entry.error : ""));
    if (entry.error) {
      const drop = make("button", "inline", "Discard");
      drop.type = "button";
      drop.addEventListener("click", () => {
        dropEntry(entry);
        line.remove();
        savedChanged();
      });
      line.append(" ", drop);
    }
    list.append(line);
  }
  if (all.length) {
    const file = make("button", "plain", "Save them as a file");
    file.type = "button";
    file.addEventListener("click", () => download("refinerank-unsaved.json", new Blob([JSON.stringify(all, null, 1)], { type: "application/json" })));
    const again = make("button", "plain", "Try again now");
    again.type = "button";
    again.addEventListener("click", () => {
      for (const entry of waiting()) {
        entry.stuck = false;
        storeEntry(entry);
      }
      $("dialog").close();
      flush();
    });
    parts.push(list, again, " ", file);
  }
  openDialog("Saved state", parts);
}

function wireOutbox() {
  $("saved").addEventListener("click", showWaiting);
  window.addEventListener("online", flush);
  window.addEventListener("storage", savedChanged);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && waiting().length) flush(); });
  flush();
}
