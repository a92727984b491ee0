// Everything put together: layers, keys, clips, answers; what the server sends.

const KEYS = [
  ["\u2190 \u2192", "one frame back, on"], ["Shift + \u2190 \u2192", "ten frames"], ["Home, End", "first, last frame"], ["N P", "next, previous clip"],
  ["Space", "play, pause"], ["1 to 7", "layers: pool, refined, RefineRank, MedVLM, MedVLM+GD, human, truth"],
  ["M", "response map over the stage"], ["[ ]", "previous, next block"], ["+ \u2212 0", "zoom in, out, fit"],
  ["\u2191 \u2193 in the list", "candidate above, below"], ["/", "to the question"], ["?", "this help"],
];

function buildLayers() {
  LAYER_KEYS.forEach((name, at) => {
    const role = ROLES[name];
    const chip = make("button", "layer");
    chip.type = "button";
    chip.dataset.layer = name;
    chip.title = "Key " + (at + 1);
    chip.append(swatch(name), make("span", "", role.name));
    chip.addEventListener("click", () => toggleLayer(name));
    $("layers").append(chip);
  });
  layersChanged();
}

function toggleLayer(name) {
  if (S.layers.has(name)) S.layers.delete(name);
  else S.layers.add(name);
  layersChanged();
  drawSoon(name === "truth");
  stageMoved();
}

function layersChanged() {
  const truth = Boolean(S.answer && S.answer.times.some((time) => time.truth));
  for (const chip of $("layers").children) {
    chip.setAttribute("aria-pressed", S.layers.has(chip.dataset.layer));
    if (chip.dataset.layer === "truth") chip.hidden = !truth;
    if (chip.dataset.layer === "human") chip.hidden = ![...S.human.values()].some((one) => one.box);
  }
}

function floorChanged() {
  const share = Number($("floor").value) / 100;
  const pool = poolNow();
  if (pool) membersOf(pool);
  S.floor = pool && share > 0 ? pool.range[0] + share * (pool.range[1] - pool.range[0]) : -Infinity;
  $("floortext").textContent = S.floor === -Infinity ? "all" : figure(S.floor, 2);
}

function badge() {
  const facts = profileNow();
  $("badge").textContent = facts.badge;
  $("badge").dataset.kind = facts.kind;
  $("badge").title = facts.label + "\n" + facts.ids.join("\n") + "\non " + facts.device;
  $("badge").append(make("small", "", "#" + facts.ids[2].split("@").pop().slice(0, 8))); // whole ids in the title
  $("badge").setAttribute("aria-label", facts.badge + ": " + facts.label + ". " + facts.ids.join(", "));
  $("badge").setAttribute("role", "note");
  $("caution").textContent = facts.caution;
  $("caution").hidden = !facts.caution;
}

function help() {
  const table = make("dl", "keytable");
  for (const [keys, words] of KEYS) table.append(make("dt", "", keys), make("dd", "", words));
  const facts = props.profile;
  const about = make("p", "", "Models: " + facts.label + " \u2014 " + facts.ids.join(", ") + ", on " + facts.device + ".");
  const use = make("p", "", "Wheel over the focused stage zooms, dragging pans, a double click fits. Click a box to select it.");
  openDialog("Keys", [table, use, about]);
}

const typing = (node) => Boolean(node.closest && node.closest("input:not([type=range]):not([type=checkbox]), textarea, select, [contenteditable]"));

function keyDown(event) {
  const node = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || typing(node) || $("dialog").open) return;
  if (!element.offsetParent && !document.fullscreenElement) return; // another tab of the page is open
  const range = node.type === "range";
  const pressing = node.closest && node.closest("button, summary, a");
  const tens = event.shiftKey ? 10 : 1;
  const actions = {
    ArrowRight: range ? null : () => step(tens), ArrowLeft: range ? null : () => step(-tens),
    Home: range ? null : () => step("first"), End: range ? null : () => step("last"),
    " ": pressing || node.type === "checkbox" ? null : () => step("play"),
    n: () => stepClip(1), p: () => stepClip(-1),
    m: toggleOverlay, "[": () => stepOverlay(-1), "]": () => stepOverlay(1),
    "+": () => zoomAction("in"), "=": () => zoomAction("in"), "-": () => zoomAction("out"), 0: () => zoomAction("fit"),
    "/": () => $("question").focus(), "?": help,
    Escape: () => { $("inspector").classList.remove("open"); select(null); },
  };
  const layer = LAYER_KEYS[Number(event.key) - 1];
  const action = layer ? () => toggleLayer(layer) : actions[event.key] || actions[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  action();
}

// Round the list of clips.
function stepClip(step) {
  const list = $("clips");
  if (list.disabled || list.options.length < 2) return;
  list.selectedIndex = (list.selectedIndex + step + list.options.length) % list.options.length;
  trigger("open_clip", { clip: list.value });
}

function wireStage() {
  document.addEventListener("keydown", keyDown);
  $("topk").addEventListener("input", (event) => {
    S.topk = Math.max(1, Math.min(48, Number(event.target.value) || 1));
    drawSoon();
  });
  $("floor").addEventListener("input", () => {
    floorChanged();
    listChanged();
    drawSoon();
  });
  $("clips").addEventListener("change", (event) => {
    if (event.target.value) trigger("open_clip", { clip: event.target.value });
  });
  $("pick").hidden = $("masklabel").hidden = !props.limits.uploads;
  $("pick").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", (event) => {
    sendFile(event.target.files[0]);
    event.target.value = "";
  });
  $("view").addEventListener("dragover", (event) => event.preventDefault());
  $("view").addEventListener("drop", (event) => {
    event.preventDefault();
    sendFile(event.dataTransfer.files[0]);
  });
  $("help").addEventListener("click", help);
}

followTheme(drawLanes);
root.stage = S; // for the console and for tests: what is on the screen
buildLayers();
buildStrip();
badge();
wireVariants();
wireCanvas();
wireInspector();
wireMaps();
wireTransport();
wireAsk();
wireTake();
wireStage();
wireFigures();
wireHuman();
watch(["samples", "clip", "answer", "progress", "link"], changed);
if (props.link) changed();
else transportChanged();
