// Tables: where IoU is lost, two runs, agreement.

function table(heads, rows, caption) {
  const node = make("table", "figures");
  if (caption) node.append(make("caption", "", caption));
  const head = make("tr");
  head.append(...heads.map((words) => {
    const cell = make("th", "", words);
    cell.scope = "col";
    return cell;
  }));
  const top = make("thead");
  top.append(head);
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr");
    line.append(...row.map((cell) => {
      const box = make("td");
      if (cell instanceof Node) box.append(cell);
      else box.textContent = cell;
      return box;
    }));
    body.append(line);
  }
  node.append(top, body);
  return node;
}

function lossesChanged(facts) {
  const rows = facts.loss.filter((one) => one.times).map((one) => [one.dataset, String(one.times), figure(one.selected, 3), figure(one.oracle, 3),
    figure(one.candidate, 3), figure(one.filter, 3), figure(one.ranking, 3), String(one.rescued), String(one.harmed)]);
  const heads = ["Data set", "Times", "Answer IoU", "Oracle IoU", "Candidate loss", "Filter loss", "Ranking loss", "Rescued by refinement", "Harmed by it"];
  $("losses").replaceChildren(table(heads, rows, "(1 \u2212 oracle) + (oracle \u2212 answer): what the candidates lose, and what filter and ranking lose"));
}

function runsChanged(facts) {
  const several = facts.runs.length > 1;
  $("runshint").textContent = several ? "The same times, answered by two methods, profiles or sets of checkpoints; the filters above hold here, too." : "Answers of one method alone can be judged. Put those of another into the queue to compare.";
  $("runpair").hidden = !several;
  for (const name of ["runbefore", "runafter"]) {
    const now = $(name).value;
    $(name).replaceChildren(new Option("choose", ""), ...facts.runs.map((one) => new Option(one.label, one.run)));
    $(name).value = facts.runs.some((one) => one.run === now) ? now : "";
  }
  const home = $("comparison");
  home.replaceChildren();
  const found = facts.comparison;
  if (!found) {
    if ($("runbefore").value && $("runbefore").value === $("runafter").value) home.append(make("p", "", "Choose two different ones."));
    return;
  }
  home.append(make("p", "", found.words));
  home.append(make("p", "hint", "In the pictures: was is the box before, R V D the one after, G the truth."));
  if (found.moved.length) home.append(table(["Before", "After", "Times"], found.moved.map((one) => [one.from, one.to, String(one.count)]), "Times that went from one category to another"));
  for (const [name, words] of [["better", "Better"], ["worse", "Worse"]]) {
    if (!found[name].length) continue;
    const list = make("ul", "gallery");
    list.append(...found[name].map(thumbnail));
    const all = found.counts[name];
    home.append(make("h2", "", words + ": " + (all > found[name].length ? "the largest " + found[name].length + " of " + all : all)), list);
  }
  fetchPictures();
}

async function agreementWanted() {
  const home = $("agreementbody");
  home.replaceChildren(make("p", "", "Working it out"));
  const facts = await askServer("agreement", {});
  if (facts.error) {
    home.replaceChildren(make("p", "fault", facts.error));
    return;
  }
  if (!facts.methods.length && !facts.pairs.length) {
    home.replaceChildren(make("p", "", "Nobody has decided anything yet. Accept or fix cases in Review; a second reviewer makes pairs."));
    return;
  }
  const parts = [];
  if (facts.pairs.length) {
    parts.push(table(["Reviewer", "Reviewer", "Kappa of decisions [95 %]", "IoU of boxes [95 %]"],
      facts.pairs.map((one) => [one.one, one.other, one.kappa, one.iou]), "Between reviewers, over the cases that both decided"));
  } else parts.push(make("p", "", "No two reviewers have decided the same case yet."));
  if (facts.methods.length) {
    parts.push(table(["Reviewer", "Method", "IoU of boxes [95 %]"], facts.methods.map((one) => [one.reviewer, one.method, one.iou]), "Between reviewers and methods"));
  }
  if (facts.differing.length) {
    const rows = facts.differing.map((one) => {
      const open = make("button", "inline", one.question);
      open.type = "button";
      open.addEventListener("click", () => openReview(one.case_id));
      const about = make("span");
      about.append(open, make("small", "", one.video + " \u00b7 " + (one.seconds === null ? "frame " + one.frame : one.seconds.toFixed(2) + " s")));
      return [about, one.raters.join(", "), one.decisions.join(", "), one.iou === null ? "\u2013" : figure(one.iou, 2)];
    });
    parts.push(table(["Case", "Reviewers", "Decisions", "IoU"], rows, "Queue of disagreements, the worst first (" + facts.total + ")"));
  }
  home.replaceChildren(...parts);
}
