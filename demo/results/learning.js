// Learning from reviews: the button, how far it is, what came of it.

const L = { timer: 0, facts: null };

const visitor = () => ({ name: kept("refinerank-name") || "", token: window.refinerankToken || "" });

async function learningWanted() {
  clearTimeout(L.timer);
  const facts = await askServer("learn_state", {});
  learningChanged(facts);
}

function learningChanged(facts) {
  clearTimeout(L.timer);
  if (facts.error) {
    $("learnfault").textContent = facts.error;
    return;
  }
  L.facts = facts;
  const run = facts.run;
  const running = Boolean(run && run.status === "running");
  $("learnfault").textContent = "";
  $("learnsay").textContent = facts.say;
  $("learnform").hidden = !facts.available;
  $("learnstart").disabled = running || !facts.enough;
  $("learnname").disabled = running;
  $("learnstop").hidden = !running;
  $("learnrun").hidden = !run;
  if (run) runChanged(run, running);
  if (running && $("learning").open && element.offsetParent !== null) L.timer = setTimeout(learningWanted, 2000);
}

function runChanged(run, running) {
  $("learnrun").dataset.status = run.status;
  $("learnnow").textContent = run.report ? "" : run.say; // the report says it itself
  const bar = $("learnbar");
  bar.hidden = !running;
  if (run.share === null) bar.removeAttribute("value");
  else bar.value = run.share;
  const last = run.losses.length ? run.losses[run.losses.length - 1].toFixed(3) : "";
  $("learnlossword").textContent = run.losses.length > 1 ? "Loss " + run.losses[0].toFixed(3) + " to " + last + " in " + run.losses.length + " epochs" : "";
  lossLine($("learnloss"), run.losses);
  reportChanged(run.report);
}

// A small line of the losses so far.
function lossLine(canvas, losses) {
  canvas.hidden = losses.length < 2;
  if (canvas.hidden) return;
  const { pen, width, height } = prepare(canvas);
  const low = Math.min(...losses), span = Math.max(...losses) - low || 1;
  pen.strokeStyle = "#3A93C8";
  pen.lineWidth = 2;
  pen.beginPath();
  losses.forEach((loss, k) => pen.lineTo(3 + (k / (losses.length - 1)) * (width - 6), height - 4 - ((loss - low) / span) * (height - 8)));
  pen.stroke();
}

function reportChanged(report) {
  const home = $("learnreport");
  home.replaceChildren();
  if (!report) return;
  const say = make("p", "verdict", report.say);
  say.dataset.verdict = report.verdict;
  home.append(say);
  if (report.table) home.append(tableBlock(report.table));
  const origin = make("dl", "origin");
  origin.append(...report.origin.flatMap(([word, what]) => [make("dt", "", word), make("dd", "", what)]));
  home.append(origin);
  if (!report.left_out.length) return;
  const left = make("details");
  const list = make("ul", "sentences");
  list.append(...report.left_out.map((words) => make("li", "", words)));
  left.append(make("summary", "", report.left_out.length + " left out"), list);
  home.append(left);
}

async function learnStart() {
  const name = $("learnname").value.trim();
  $("learnstart").disabled = true;
  const facts = await askServer("learn_start", { who: visitor(), name });
  if (facts.error) $("learnstart").disabled = false;
  learningChanged(facts);
}

function wireLearning() {
  $("learning").addEventListener("toggle", () => { if ($("learning").open) learningWanted(); });
  $("learnform").addEventListener("submit", (event) => {
    event.preventDefault();
    learnStart();
  });
  $("learnstop").addEventListener("click", async () => learningChanged(await askServer("learn_stop", { who: visitor() })));
}
