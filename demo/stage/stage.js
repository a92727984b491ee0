// Everything put together: layers, keys, clips, answers; what the server sends.

const KEYS = [
  ["\u2190 \u2192", "one frame back, on"], ["Shift + \u2190 \u2192", "ten frames"], ["Home, End", "first, last frame"],
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

function clipArrived() {
  const clip = plain(props.clip);
  stopPlaying();
  note("");
  root.dataset.uploading = "no";
  if (!clip) {
    root.dataset.view = "empty";
    emptyStage();
    return;
  }
  Object.assign(clip, timeTable(clip.times, clip.count));
  S.clip = clip;
  S.image = null;
  S.index = -1;
  wanted = clip.index;
  view.fitted = true;
  frames.reset(clip);
  root.dataset.view = "clip";
  $("empty").hidden = true;
  if (!clip.sample) uploadOption(clip);
  $("clips").value = clip.token;
  Object.assign(A, { read: [], target: "", own: null, error: "", examples: false, opening: false });
  $("question").value = "";
  transportChanged();
  wantShots(clip, 1500);
  if (clip.warnings.length) note(clip.warnings.join(" "), "warning");
  say("Clip " + clip.title + ", " + clip.count + " frames.");
}

async function firstFrame() {
  const clip = S.clip;
  const image = clip.src ? await frames.take(clip.index, clip.src).catch(() => null) : null;
  if (S.clip !== clip) return;
  if (image && wanted === clip.index) show(clip.index, image);
  else go(wanted);
}

function uploadOption(clip) {
  const list = $("clips");
  const known = [...list.options].some((one) => one.value === clip.token);
  if (!known) list.prepend(new Option("Your upload: " + clip.title, clip.token));
  list.disabled = false;
  for (const one of [...list.options]) {
    if (!one.value) one.remove();
  }
}

// An answer, or more of the one that is on the screen: what is looked at then stays as it is.
function answerArrived() {
  const answer = plain(props.answer);
  const old = S.answer;
  S.answer = answer && S.clip && answer.clip === S.clip.token ? answer : null;
  const grown = Boolean(old && S.answer && old.token === S.answer.token);
  if (!grown) {
    S.pools.clear();
    S.maps.clear();
    S.human = new Map();
    S.k = null;
    S.selected = null;
  }
  if (S.answer) {
    S.answer.byFrame = new Map();
    S.answer.times.forEach((time) => {
      if (!S.answer.byFrame.has(time.frame)) S.answer.byFrame.set(time.frame, time.k);
    });
    if (S.answer.pool && !S.pools.has(S.answer.first)) S.pools.set(S.answer.first, S.answer.pool);
    if (!grown) questionShown();
    const warnings = S.answer.warnings.join(" ");
    if (warnings && !(grown && warnings === old.warnings.join(" "))) note(warnings, "warning");
    if (grown) say(grownWords(old));
    else say("Answer to: " + S.answer.text + ". " + S.answer.times[S.answer.first].why);
  }
  layersChanged();
  timeArrived(grown);
  if (!grown) wantHuman();
}

// The box shows what was asked, unless other words were typed meanwhile.
function questionShown() {
  if (S.busy && $("question").value.trim() !== A.asked) return;
  $("question").value = S.answer.text;
  readQuestion();
}

function grownWords(old) {
  const more = S.answer.times.length - old.times.length;
  if (more) return S.answer.times.length + " of " + A.total + " times are answered.";
  const now = S.k === null ? null : S.answer.times[S.k];
  if (!now || now.medvlm.state !== "written" || old.times[now.k].medvlm.state === "written") return "";
  return now.medvlm.box ? "The MedVLM has written a box." : "The MedVLM has written no box.";
}

function timeArrived(grown) {
  const here = S.answer ? S.answer.byFrame.get(S.index) : undefined;
  if (here !== undefined && !(grown && here === S.k)) S.k = null;
  setTime(here === undefined ? null : here);
  inspectorChanged();
  stripChanged();
  targetsChanged();
  mapsChanged();
  chipsChanged();
  if (S.image) drawAll();
}

// A link says more than the clip: layers, a map, a question that is asked at once.
function followLink(link, answered) {
  if (!link) return;
  if (link.layers !== null) {
    S.layers = new Set(LAYER_KEYS.filter((name) => link.layers.includes(ROLES[name].letter)));
    layersChanged();
  }
  S.overlay = link.map || "";
  if (!link.q || answered) return;
  $("question").value = link.q;
  readQuestion();
  A.own = link.t;
  submitQuestion();
}

function changed() {
  if (JSON.stringify(props.samples) !== samplesShown) samplesArrived();
  const clip = props.clip ? props.clip.token + props.clip.index : "";
  if (clip !== clipShown) {
    clipShown = clip;
    clipArrived();
    answerShown = "";
    answerArrived();
    if (S.clip) firstFrame().then(() => {
      answerMaybe();
      followLink(S.clip.link, Boolean(S.answer));
    });
  } else answerMaybe();
  progressArrived();
}

let samplesShown = "";
let clipShown = null;
let answerShown = "";

function answerMaybe() {
  const token = props.answer ? props.answer.token : "";
  const shown = props.answer ? token + " " + props.answer.version : "";
  if (shown === answerShown) return;
  const grown = Boolean(token) && answerShown.startsWith(token + " ");
  answerShown = shown;
  const fresh = S.busy || A.opening;
  A.opening = false;
  answerArrived();
  focusLater();
  if (!grown && S.answer && S.k === null && (fresh || !S.clip.link)) go(S.answer.times[S.answer.first].frame);
  stageMoved();
}

function samplesArrived() {
  samplesShown = JSON.stringify(props.samples);
  const list = $("clips");
  list.replaceChildren(...plain(props.samples).map((one) => new Option(one.title, one.token)));
  if (!list.options.length) list.append(new Option("No bundled clips", ""));
  list.disabled = props.samples.length === 0;
}

function emptyStage() {
  const box = $("empty");
  box.hidden = false;
  const open = make("button", "primary", "Upload a clip");
  open.type = "button";
  open.addEventListener("click", () => $("file").click());
  box.replaceChildren(
    make("h2", "", "Start with a clip"),
    make("p", "", "Drop a surgical video here: MP4, MOV, MKV, AVI or GIF, up to " + props.limits.upload_mb + " MB and "
      + Math.round(props.limits.duration_s / 60) + " minutes. It stays in this session and is removed when you leave."),
    open,
  );
  transportChanged();
  inspectorChanged();
  stripChanged();
  mapsChanged();
}

async function sendFile(file) {
  if (!file) return;
  const megabytes = file.size / 1048576;
  if (megabytes > props.limits.upload_mb) {
    const words = "The clip has " + megabytes.toFixed(0) + " MB; at most " + props.limits.upload_mb + " MB are taken. Cut it shorter or export it smaller.";
    note(words, "error");
    say(words);
    return;
  }
  root.dataset.uploading = "yes";
  note("Uploading " + file.name + " (" + megabytes.toFixed(1) + " MB)", "info");
  try {
    const sent = await upload(file);
    trigger("upload", { path: sent.path });
  } catch {
    root.dataset.uploading = "no";
    note("The upload was broken off. Try again.", "error");
  }
}

function badge() {
  const facts = props.profile;
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

// Gradio marks the page's body; the stage's own rules are scoped to its element.
function followTheme() {
  root.classList.toggle("dark", document.body.classList.contains("dark"));
  drawLanes();
}

new MutationObserver(followTheme).observe(document.body, { attributes: true, attributeFilter: ["class"] });
followTheme();
root.stage = S; // for the console and for tests: what is on the screen
buildLayers();
buildStrip();
badge();
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
