// Everything put together: which file, its tables, its figures.

const R = { facts: null, cases: {}, token: "", drawn: "", seen: false, ticket: 0 };
const plots = () => document.querySelector("#results-plots");

async function load(token) {
  const ticket = ++R.ticket;
  const reply = await askServer("results", { document: token || "" });
  if (ticket !== R.ticket) return;
  if (reply.error) {
    note(reply.error, "error");
    if (!R.facts) root.dataset.view = "error";
    return;
  }
  note(reply.faults.join(" "), "warning");
  listArrived(reply.documents, reply.document);
  $("published").replaceChildren(tableBlock(reply.published.leaderboard), tableBlock(reply.published.split));
  $("content").hidden = false;
  if (!reply.document) {
    root.dataset.view = "empty";
    $("say").textContent = reply.say;
    plots().hidden = true;
    for (const name of ["listensection", "worstsection", "videosection", "problemsection", "originsection", "firstsection"]) $(name).hidden = true;
    return;
  }
  $("firstsection").hidden = $("originsection").hidden = false;
  R.facts = reply.document;
  R.token = reply.document.token;
  documentChanged();
  draw();
  recount();
}

// How many cases of each video the record has by now.
async function recount() {
  const counted = await askServer("results_cases", {});
  if (counted.error) return;
  R.cases = counted.cases;
  if (R.facts && R.facts.videos.length) videosChanged();
}

function listArrived(documents, shown) {
  const list = $("document");
  const own = [...list.options].filter((one) => one.dataset.own);
  list.replaceChildren(...documents.map((one) => new Option(one.words, one.token)), ...own);
  if (shown) list.value = shown.token;
  list.disabled = !list.options.length;
}

function documentChanged() {
  const facts = R.facts;
  root.dataset.view = facts.kind;
  $("badge").hidden = !facts.badge;
  $("badge").textContent = facts.badge;
  $("say").textContent = [facts.say, facts.older].filter(Boolean).join(" ");
  $("first").replaceChildren(tableBlock(facts.first));
  $("tables").replaceChildren(...facts.tables.map(tableBlock));
  $("listensection").hidden = !facts.listens.length;
  $("listens").replaceChildren(...facts.listens.map((words) => make("li", "", words)));
  for (const [name, rows] of [["videoset", facts.videos], ["worstset", facts.worst]]) {
    const known = new Set(rows.map((one) => one.dataset));
    $(name).replaceChildren(new Option("all", ""), ...facts.datasets.filter((one) => known.has(one)).map((one) => new Option(one, one)));
  }
  $("videosection").hidden = !facts.videos.length;
  if (facts.videos.length) videosChanged();
  $("worstsection").hidden = !facts.worst.length;
  if (facts.worst.length) worstChanged();
  $("problemsection").hidden = !facts.problems.length;
  $("problemtitle").textContent = facts.problems.length + (facts.problems.length === 1 ? " problem" : " problems") + " with rows or predictions";
  $("problems").replaceChildren(...facts.problems.map((words) => make("li", "", words)));
  $("origin").replaceChildren(...facts.origin.flatMap(([word, what]) => [make("dt", "", word), make("dd", "", what)]));
}

// The figures are drawn by the server once for each file.
function draw() {
  plots().hidden = !R.facts.figures.length;
  if (R.drawn === R.token || plots().hidden) return;
  R.drawn = R.token;
  trigger("draw", { document: R.token });
}

async function openFile() {
  const file = $("file").files[0];
  $("file").value = "";
  if (!file) return;
  say("Reading " + file.name);
  let reply;
  try {
    const sent = await upload(file);
    reply = await askServer("results_open", { path: sent.path });
  } catch {
    reply = { error: "The upload was broken off. Try again." };
  }
  if (reply.error) {
    note(reply.error, "error");
    return;
  }
  const option = new Option(reply.words + " (opened)", reply.token);
  option.dataset.own = "yes";
  $("document").append(option);
  load(reply.token);
}

followTheme();
$("document").addEventListener("change", () => load($("document").value));
$("open").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", openFile);
$("videoset").addEventListener("change", videosChanged);
$("worstset").addEventListener("change", worstChanged);
$("allvideos").addEventListener("click", () => {
  V.all = !V.all;
  videosChanged();
});
wireLearning();
setTimeout(() => whenPlotClicked("plot-videos", videoClicked), 0);
// Nothing is asked for before the tab is looked at; cases are counted anew whenever it is.
new ResizeObserver(() => {
  const seen = element.offsetParent !== null;
  if (seen && !R.seen) {
    if (R.facts) recount();
    else load("");
    if ($("learning").open) learningWanted();
  }
  R.seen = seen;
}).observe(root);
