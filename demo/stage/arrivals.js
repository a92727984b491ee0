// What the server sends: the list of clips, a clip, an answer or more of it, a link to follow.

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
    legendChanged();
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
  if (link.profile && link.profile !== props.profile.name) {
    note("This link was made with the models of the profile " + link.profile + "; " + props.profile.name + " answers here.", "warning");
  }
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
