// Everything put together: filters, clicks in the figures, what comes from the server.

const F = { offset: 0, ticket: 0, stamp: "", seen: false };
const FILTERS = ["category", "dataset", "procedure", "tool", "size", "video"];
const filterField = (name) => element.querySelector('[data-filter="' + name + '"]');

function wishes() {
  const ask = { method: $("method").value, by: $("by").value, offset: F.offset, before: $("runbefore").value, after: $("runafter").value };
  for (const name of FILTERS) ask[name] = filterField(name).value;
  return ask;
}

async function load() {
  const ticket = ++F.ticket;
  const facts = await askServer("findings", wishes());
  if (ticket !== F.ticket) return;
  note(facts.error || "", "error");
  if (facts.error) return;
  root.dataset.view = facts.total ? "findings" : "empty";
  const none = !facts.total;
  for (const part of [$("content"), document.querySelector("#findings-plots")]) part.hidden = none;
  $("toreview").hidden = !none;
  $("basis").textContent = none ? "No case has a truth or a reviewed box yet. Fill the queue in Review, or accept and fix some cases there."
    : facts.total + " times with an answer of this method can be judged (IoU \u2265 0.5 is correct)."
      + (facts.reviewed ? " For " + facts.reviewed + " of them there is no annotation: the reviewed box takes its place." : " All of them against annotated truth.");
  choicesArrived(facts);
  $("gallerytitle").textContent = facts.shown + " times, the worst first";
  lossesChanged(facts);
  galleryChanged(facts);
  runsChanged(facts);
  const plots = wishes();
  const stamp = JSON.stringify([plots.method, plots.by, facts.total, facts.loss]);
  if (facts.total && stamp !== F.stamp) {
    F.stamp = stamp;
    trigger("tally", { method: facts.method, by: plots.by });
  }
}

function choicesArrived(facts) {
  const method = $("method");
  method.replaceChildren(...facts.methods.map((one) => new Option(one.label, one.name)));
  method.value = facts.method;
  for (const name of FILTERS) {
    const list = filterField(name);
    const before = list.value;
    list.replaceChildren(new Option("any", ""), ...facts.choices[name].map((one) => new Option(one, one)));
    list.value = facts.choices[name].includes(before) ? before : "";
  }
}

function reload() {
  F.offset = 0;
  load();
}

// A click on a part of a bar sets the filters that it stands for.
function clicked(event) {
  const data = event.points && event.points[0] && event.points[0].customdata;
  if (!data) return;
  const [by, value, category] = data;
  if (by === "method") {
    const option = [...$("method").options].find((one) => one.textContent === value);
    if (option) $("method").value = option.value;
  } else if (filterField(by)) filterField(by).value = value;
  filterField("category").value = category;
  reload();
}

followTheme();
$("method").addEventListener("change", reload);
$("by").addEventListener("change", load);
for (const name of FILTERS) filterField(name).addEventListener("change", reload);
for (const name of ["runbefore", "runafter"]) $(name).addEventListener("change", load);
$("clear").addEventListener("click", () => {
  for (const name of FILTERS) filterField(name).value = "";
  reload();
});
$("toreview").addEventListener("click", () => openReview(""));
$("again").addEventListener("click", () => {
  F.stamp = "";
  reload();
  if ($("agreement").open) agreementWanted();
});
$("before").addEventListener("click", () => {
  F.offset = Math.max(0, F.offset - 24);
  load();
});
$("after").addEventListener("click", () => {
  F.offset += 24;
  load();
});
$("agreement").addEventListener("toggle", () => { if ($("agreement").open) agreementWanted(); });
// The Results tab sends here to look at one video's cases; this tab may not have been there yet.
function followVideo() {
  const video = window.refinerankVideo;
  if (!video) return;
  window.refinerankVideo = "";
  for (const name of FILTERS) filterField(name).value = "";
  const list = filterField("video");
  if (![...list.options].some((one) => one.value === video)) list.append(new Option(video, video));
  list.value = video;
  reload();
}

window.addEventListener("refinerank-video", followVideo);
followVideo();
setTimeout(() => ["plot-counts", "plot-losses"].forEach((name) => whenPlotClicked(name, clicked)), 0);
// What was reviewed meanwhile counts when the tab is turned to again.
new ResizeObserver(() => {
  const seen = element.offsetParent !== null;
  if (seen && !F.seen) load();
  F.seen = seen;
}).observe(root);
