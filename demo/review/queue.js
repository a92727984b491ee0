// The queue: filters, order, pages; which case comes next.

const Q = { items: [], total: 0, offset: 0, seed: 0, ticket: 0, choices: null, timer: 0, broken: false };

const STATUSES = [["", "Any status"], ["new", "New"], ["accepted", "Accepted"], ["fixed", "Fixed"], ["rejected", "Rejected"],
  ["unsure", "Unsure"], ["skipped", "Skipped"]];
const SORTS = [["imported", "as imported"], ["margin", "margin"], ["disagreement", "disagreement of methods"], ["iou", "IoU with truth"],
  ["decided", "last decided"], ["video", "video"], ["shuffle", "shuffled"]];
const CHOSEN = [["method", "Method", "methods"], ["dataset", "Data set", "datasets"], ["procedure", "Procedure", "procedures"],
  ["tag", "Tag", "tags"], ["reviewer", "Decided by", "reviewers"], ["not_by", "Not by", "reviewers"], ["assigned_to", "Assigned to", "assignees"]];
const RANGES = [["margin", "Margin"], ["disagreement", "Disagreement"], ["iou", "IoU with truth"]];

const field = (name) => element.querySelector('[data-filter="' + name + '"]');

function buildFilters() {
  $("status").append(...STATUSES.map(([value, words]) => new Option(words, value)));
  const grid = $("filtergrid");
  for (const [name, words] of CHOSEN) grid.append(...labelled(words, chooser(name, words)));
  for (const [name, words] of RANGES) {
    const pair = make("span", "range");
    for (const end of ["from", "to"]) {
      const number = make("input");
      Object.assign(number, { type: "number", step: "any", placeholder: end });
      number.dataset.filter = name + "-" + end;
      number.setAttribute("aria-label", words + " " + end);
      pair.append(number);
    }
    grid.append(make("span", "lead", words), pair);
  }
  const sort = chooser("sort", "Order");
  sort.replaceChildren(...SORTS.map(([value, words]) => new Option(words, value)));
  grid.append(...labelled("Order", sort));
  grid.append(...labelled("Downwards", ticked("descending")), ...labelled("Conflicts only", ticked("conflicts")));
  const clear = make("button", "plain", "Clear filters");
  clear.type = "button";
  clear.addEventListener("click", () => {
    for (const one of element.querySelectorAll("[data-filter]")) {
      if (one.type === "checkbox") one.checked = false;
      else one.value = one.dataset.filter === "sort" ? "imported" : "";
    }
    $("text").value = "";
    $("status").value = "";
    fromStart();
  });
  grid.append(clear);
}

function labelled(words, node) {
  const label = make("label", "lead", words);
  node.id = "rr-filter-" + node.dataset.filter;
  label.htmlFor = node.id;
  return [label, node];
}

function chooser(name) {
  const list = make("select");
  list.dataset.filter = name;
  list.append(new Option("any", ""));
  return list;
}

function ticked(name) {
  const box = make("input");
  box.type = "checkbox";
  box.dataset.filter = name;
  return box;
}

function filterNow() {
  const bound = (name) => (field(name).value === "" ? null : Number(field(name).value));
  const ask = { text: $("text").value.trim(), status: $("status").value ? [$("status").value] : [] };
  for (const [name] of CHOSEN) ask[name] = field(name).value;
  for (const [name] of RANGES) ask[name] = [bound(name + "-from"), bound(name + "-to")];
  return { ...ask, sort: field("sort").value, descending: field("descending").checked, conflicts: field("conflicts").checked };
}

function filtersOn(ask) {
  const chosen = CHOSEN.filter(([name]) => ask[name]).length + Number(ask.conflicts) + Number(ask.sort !== "imported");
  return chosen + RANGES.filter(([name]) => ask[name].some((one) => one !== null)).length;
}

function fromStart() {
  clearTimeout(Q.timer);
  Q.offset = 0;
  Q.timer = setTimeout(loadQueue, 150);
}

async function loadQueue() {
  const ask = filterNow();
  const ticket = ++Q.ticket;
  const reply = await askServer("review_queue", { ...ask, seed: Q.seed, offset: Q.offset, me: me.name, blind: wish.blind });
  if (ticket !== Q.ticket) return false;
  Q.broken = Boolean(reply.error);
  if (reply.error) {
    note(reply.error, "error");
    return false;
  }
  Object.assign(Q, { items: reply.items, total: reply.total });
  const on = filtersOn(ask);
  $("filtercount").textContent = on ? "(" + on + " set)" : "";
  $("progress").textContent = $("progress").title = reply.progress.total ? reply.progress.words : "Review";
  choicesArrived(reply.choices);
  drawQueue();
  if (!reply.progress.total) emptyReview();
  else if (!Q.items.length) nothingFits();
  return true;
}

function choicesArrived(choices) {
  const stamp = JSON.stringify(choices);
  if (Q.choices === stamp) return;
  Q.choices = stamp;
  for (const [name, , source] of CHOSEN) {
    const list = field(name);
    const before = list.value;
    const values = choices[source].map((one) => (typeof one === "string" ? new Option(one, one) : new Option(one.label, one.name)));
    list.replaceChildren(new Option("any", ""), ...values);
    list.value = [...list.options].some((one) => one.value === before) ? before : "";
  }
  const names = new Set([...choices.reviewers, ...choices.assignees, me.name].filter(Boolean));
  $("names").replaceChildren(...[...names].map((name) => new Option(name)));
}

function drawQueue() {
  const first = Q.total ? Q.offset + 1 : 0;
  $("pagewords").textContent = first + "\u2013" + (Q.offset + Q.items.length) + " of " + Q.total;
  $("before").disabled = Q.offset === 0;
  $("after").disabled = Q.offset + Q.items.length >= Q.total;
  $("cases").replaceChildren(...Q.items.map(caseLine));
}

function caseLine(item) {
  const line = make("li");
  const button = make("button", "caseline");
  button.type = "button";
  button.dataset.case = item.case_id;
  button.setAttribute("aria-current", item.case_id === C.id ? "true" : "false");
  const pending = unconfirmed(item.case_id);
  const word = pending ? "saving" : item.conflicts ? "conflict" : item.status;
  const status = make("span", "status", word);
  status.dataset.status = word;
  const words = make("span", "asks", item.target || item.question);
  words.title = item.question;
  const facts = [item.video_name.replace(/\.[a-z0-9]{2,4}$/i, ""), item.requested_s === null ? "frame " + item.frame_index : item.requested_s.toFixed(2) + " s"];
  if (item.iou != null && !wish.blind) facts.push("IoU " + item.iou.toFixed(2));
  if (item.disagreement !== null && !wish.blind) facts.push("apart " + item.disagreement.toFixed(2));
  if (item.assigned_to) facts.push("for " + item.assigned_to);
  button.append(words, status, make("small", "", facts.join(" \u00b7 ")));
  button.addEventListener("click", () => {
    openCase(item.case_id);
    $("view").focus({ preventScroll: true }); // the keys are about the box from here on
  });
  line.append(button);
  return line;
}

// The case after (or before) the open one, over the ends of pages. What was decided may have left
// the filter, so a page that is through is read again before the next one is turned to.
async function openNext(step) {
  const at = Q.items.findIndex((one) => one.case_id === C.id);
  const next = Q.items[at + step];
  if (next) return openCase(next.case_id);
  if (step < 0) {
    if (Q.offset === 0) return say("This is the first case.");
    Q.offset = Math.max(0, Q.offset - props.page);
    if (await loadQueue()) return openCase(Q.items[Q.items.length - 1].case_id);
    return undefined;
  }
  const left = $("status").value || field("not_by").value;
  if (!left) {
    if (Q.offset + Q.items.length >= Q.total) return finished();
    Q.offset += props.page;
  } else Q.offset = 0;
  if (!await loadQueue()) return undefined;
  const fresh = Q.items.find((one) => one.case_id !== C.id && !(left && unconfirmed(one.case_id)));
  return fresh ? openCase(fresh.case_id) : finished();
}

function finished() {
  note("That was the last case of this queue.");
  say("That was the last case of this queue.");
}

function emptyReview() {
  const fill = make("button", "primary", "Review the bundled answers");
  fill.type = "button";
  fill.addEventListener("click", fillQueue);
  const bring = make("button", "plain", "Import a file");
  bring.type = "button";
  bring.addEventListener("click", showFiles);
  nothingOpen("Nothing to review yet", "Put the answers that come with the bundled clips into the queue, import a file, or add an answer in Explore.", [fill, bring]);
}

function nothingFits() {
  if (C.id) return;
  nothingOpen("No case fits the filters", "Clear the filters on the left, or choose another status.", []);
}

function wireQueue() {
  buildFilters();
  $("text").addEventListener("input", fromStart);
  $("status").addEventListener("change", fromStart);
  for (const one of element.querySelectorAll("[data-filter]")) {
    one.addEventListener("change", () => {
      if (one.dataset.filter === "sort" && one.value === "shuffle") Q.seed = Math.floor(Math.random() * 48);
      fromStart();
    });
  }
  $("before").addEventListener("click", () => {
    Q.offset = Math.max(0, Q.offset - props.page);
    loadQueue();
  });
  $("after").addEventListener("click", () => {
    Q.offset += props.page;
    loadQueue();
  });
  $("cases").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const all = [...$("cases").querySelectorAll("button")];
    const next = all[all.indexOf(document.activeElement) + step];
    if (next) next.focus();
  });
}
