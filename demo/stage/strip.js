// The three answers side by side: same frame, same part of it.

const STRIP = [
  { name: "refinerank", role: "rank", title: "RefineRank" },
  { name: "medvlm", role: "medvlm", title: "MedVLM" },
  { name: "detector", role: "detector", title: "MedVLM+GD", whole: "MedVLM + GroundingDINO" },
];

function buildStrip() {
  for (const method of STRIP) {
    const panel = make("figure", "panel");
    panel.dataset.method = method.name;
    const title = make("figcaption");
    title.append(swatch(method.role), make("b", "", method.title), make("span", "iou"));
    title.title = method.whole || method.title;
    const canvas = make("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", method.title + ": no answer yet");
    const shell = make("div", "picture");
    shell.append(canvas, make("span", "nobox"));
    panel.append(title, shell, make("div", "verdict"));
    $("strip").append(panel);
  }
}

function drawStrip() {
  const time = timeNow();
  const big = $("canvas");
  for (const method of STRIP) {
    const panel = $("strip").querySelector('[data-method="' + method.name + '"]');
    const canvas = panel.querySelector("canvas");
    const { pen, width, height } = prepare(canvas);
    if (!S.clip || !S.image) continue;
    const same = view.fitted ? fitView(width, height) : sameZoom(big, width, height);
    drawSmallBackdrop(pen, same);
    const box = time ? time[method.name].box : null;
    if (time && time.truth && S.layers.has("truth")) paintBox(pen, same, time.truth, { ...ROLES.truth, width: 1.5, tag: "", double: true });
    if (box) paintBox(pen, same, box, { ...ROLES[method.role], width: 2.5 });
    paintTags();
  }
}

// The middle of what the stage shows, as much of it as fits.
function sameZoom(big, width, height) {
  const shrink = Math.min(width / big.clientWidth, height / big.clientHeight);
  const scale = view.scale * shrink;
  const [x, y] = sourcePoint(big.clientWidth / 2, big.clientHeight / 2);
  return { scale, left: width / 2 - x * scale, top: height / 2 - y * scale };
}

function stripChanged() {
  const time = timeNow();
  for (const method of STRIP) {
    const panel = $("strip").querySelector('[data-method="' + method.name + '"]');
    const verdict = panel.querySelector(".verdict");
    const missing = panel.querySelector(".nobox");
    verdict.replaceChildren();
    const box = time ? time[method.name].box : null;
    const writing = time && method.name === "medvlm" ? time.medvlm.state : "written";
    missing.textContent = time && !box ? { written: "no box", writing: "still writing", stopped: "not asked" }[writing] : "";
    missing.dataset.state = writing;
    const words = time ? verdictWords(method.name, time) : "";
    const iou = time && time.iou ? time.iou[method.name] : undefined;
    verdict.append(make("span", "", words));
    panel.querySelector(".iou").textContent = iou === undefined || writing !== "written" ? "" : "IoU " + figure(iou, 2);
    if (time && method.name === "medvlm" && writing === "written") verdict.append(wordsButton(time));
    const label = method.title + ": " + (time ? (box ? "" : missing.textContent + ". ") + words : "no answer on this frame");
    panel.querySelector("canvas").setAttribute("aria-label", label);
  }
}

function verdictWords(name, time) {
  if (name === "refinerank") return "score " + figure(time.refinerank.score, 2) + " \u00b7 margin " + short(time.refinerank.margin);
  if (name === "detector") {
    return time.detector.confidence === null ? "nothing found: fixed anchor" : "confidence " + figure(time.detector.confidence, 2);
  }
  if (time.medvlm.state === "writing") return "its own box comes last";
  if (time.medvlm.state === "stopped") return "stopped before it wrote";
  return time.medvlm.box ? "wrote a box" : "wrote no box";
}

function wordsButton(time) {
  const button = make("button", "inline", "its words");
  button.type = "button";
  button.addEventListener("click", () => {
    const text = make("pre", "modelwords", time.medvlm.text || "(nothing)");
    openDialog("What the MedVLM wrote", [make("p", "", "As it came, for all requested times together:"), text]);
  });
  return button;
}
