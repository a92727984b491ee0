// Response maps: one small picture a block, laid over the stage when chosen.

function mapsKey() {
  const one = memberAt(S.selected);
  const id = S.target === "original" || S.target === "refined" ? (one ? one.id : 0) : 0;
  return { name: [S.k, S.target, id].join("/"), id };
}

function mapsNow() {
  return S.k === null ? null : S.maps.get(mapsKey().name) || null;
}

let mapsTimer = 0;

function wantMaps() {
  clearTimeout(mapsTimer);
  if (S.k === null || !S.answer) return mapsChanged();
  const { name, id } = mapsKey();
  if (S.maps.has(name)) return mapsChanged();
  mapsTimer = setTimeout(() => loadMaps(name, id, S.k, S.target), 60);
  return undefined;
}

async function loadMaps(name, id, k, target) {
  const token = S.answer.token;
  const reply = await askServer("maps", { answer: token, k, target, candidate: id });
  if (!S.answer || S.answer.token !== token) return;
  if (reply.error) {
    if (S.k === k) {
      $("mapsrow").replaceChildren(make("p", "mapsnote", reply.error));
      say(reply.error);
    }
    return;
  }
  reply.maps.forEach(unpackMap);
  S.maps.set(name, reply);
  if (S.maps.size > 40) S.maps.delete(S.maps.keys().next().value);
  mapsChanged();
  drawSoon();
}

function targetsChanged() {
  const time = timeNow();
  const select_ = $("target");
  const options = [["answer", "the answer"], ["original", "selected, original"], ["refined", "selected, refined"]];
  if (time && time.medvlm.box) options.push(["medvlm", "MedVLM's box"]);
  if (time && time.truth) options.push(["truth", "the truth"]);
  if (!options.some(([value]) => value === S.target)) S.target = "answer";
  select_.replaceChildren(...options.map(([value, words]) => new Option(words, value, false, value === S.target)));
}

// The list of maps is built anew only when it is another list: pictures are repainted in place.
function mapsChanged() {
  const facts = mapsNow();
  const row = $("mapsrow");
  if (!facts) {
    row.replaceChildren(...emptyMaps());
    return;
  }
  const names = facts.maps.map((map) => map.name).join();
  if (row.dataset.names !== names || row.querySelector(".mapsnote, .ghost")) {
    row.dataset.names = names;
    row.replaceChildren(...facts.maps.map(mapPanel));
  }
  facts.maps.forEach((map) => paintMap(row.querySelector('[data-map="' + map.name + '"]'), facts, map));
}

function emptyMaps() {
  const words = S.k === null ? (S.answer ? "Maps belong to an answered frame." : "Maps appear with the first answer.") : "";
  const ghosts = [0, 1, 2, 3, 4].map(() => make("div", "ghost"));
  return words ? [make("p", "mapsnote", words), ...ghosts] : ghosts;
}

function mapPanel(map) {
  const panel = make("button", "map");
  panel.type = "button";
  panel.dataset.map = map.name;
  panel.append(make("span", "maptitle"), make("canvas"), make("span", "colourbar"));
  panel.addEventListener("click", () => setOverlay(S.overlay === map.name ? "" : map.name));
  panel.addEventListener("pointermove", (event) => {
    const frame = panel.querySelector("canvas").getBoundingClientRect();
    const share = [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
    if (share[1] < 0 || share[1] > 1) return;
    S.pointer = [share[0] * S.clip.width, share[1] * S.clip.height];
    mapsPointer();
  });
  panel.addEventListener("pointerleave", () => {
    S.pointer = null;
    mapsPointer();
  });
  return panel;
}

function paintMap(panel, facts, map) {
  const range = mapRange(facts, map, S.shared);
  const title = panel.querySelector(".maptitle");
  title.replaceChildren(make("b", "", map.label), make("small", "", map.feeds ? "feeds RefineNet" : map.columns + "\u00d7" + map.rows));
  const canvas = panel.querySelector("canvas");
  canvas.style.aspectRatio = S.clip.width + " / " + S.clip.height;
  const { pen, width, height } = prepare(canvas);
  const whole = { scale: width / S.clip.width, left: 0, top: 0 };
  pen.imageSmoothingEnabled = false;
  pen.drawImage(mapPicture(map, range, S.palette, false), 0, 0, width, height);
  paintBox(pen, whole, facts.target, { color: "#FFFFFF", width: 1.5, dash: [], alpha: 1 });
  if (S.pointer) paintCross(pen, whole, S.pointer);
  const bar = panel.querySelector(".colourbar");
  bar.replaceChildren(make("span", "", figure(range[0], 2)), make("span", "vh", " to "), make("i"), make("span", "", figure(range[1], 2)));
  bar.querySelector("i").style.background = barGradient(S.palette);
  const on = S.overlay === map.name;
  panel.setAttribute("aria-pressed", on);
  panel.title = on ? "Lies over the stage: click to take it away" : "Click to lay it over the stage";
}

function paintCross(pen, whole, point) {
  const [x, y] = [point[0] * whole.scale, point[1] * whole.scale];
  for (const [color, width] of [["rgba(8,10,14,0.8)", 3], ["#FFFFFF", 1]]) {
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(x - 5, y);
    pen.lineTo(x + 5, y);
    pen.moveTo(x, y - 5);
    pen.lineTo(x, y + 5);
    pen.stroke();
  }
}

function barGradient(name) {
  return "linear-gradient(to right, " + PALETTES[name].map((hex) => "#" + hex).join(", ") + ")";
}

// The cell under a source pixel: cells split the frame evenly.
function cellAt(map, point) {
  const column = Math.max(0, Math.min(map.columns - 1, Math.floor((point[0] / S.clip.width) * map.columns)));
  const row = Math.max(0, Math.min(map.rows - 1, Math.floor((point[1] / S.clip.height) * map.rows)));
  return map.values[row * map.columns + column];
}

function mapsPointer() {
  const facts = mapsNow();
  if (!facts) return;
  for (const map of facts.maps) {
    const panel = $("mapsrow").querySelector('[data-map="' + map.name + '"]');
    if (!panel) continue;
    paintMap(panel, facts, map);
    if (S.pointer) panel.querySelector("small").textContent = figure(cellAt(map, S.pointer), 3);
  }
}

const pictures = { key: "", picture: null };

function overlayPicture() {
  const facts = mapsNow();
  const map = facts && facts.maps.find((one) => one.name === S.overlay);
  if (!map) return null;
  const key = [S.answer.token, mapsKey().name, map.name, S.palette, S.shared].join("/");
  if (pictures.key !== key) {
    pictures.key = key;
    pictures.picture = mapPicture(map, mapRange(facts, map, S.shared), S.palette, true);
  }
  return pictures.picture;
}

function setOverlay(name) {
  S.overlay = name;
  mapsChanged();
  drawSoon();
  stageMoved();
  say(name ? "Map of " + name.replace("block", "block ") + " lies over the stage" : "No map over the stage");
}

function stepOverlay(step) {
  const facts = mapsNow();
  if (!facts) return;
  const names = facts.maps.map((map) => map.name);
  const at = names.indexOf(S.overlay);
  setOverlay(names[(at + step + names.length + (at < 0 && step < 0 ? 1 : 0)) % names.length]);
}

function toggleOverlay() {
  const facts = mapsNow();
  if (!facts) return;
  const usual = facts.maps.find((map) => map.feeds) || facts.maps[0];
  setOverlay(S.overlay ? "" : usual.name);
}

function wireMaps() {
  $("caveat").textContent = props.caveat;
  $("opacity").addEventListener("input", (event) => {
    S.opacity = Number(event.target.value) / 100;
    $("opacitytext").textContent = event.target.value + " %";
    drawSoon();
  });
  const changed = () => {
    mapsChanged();
    drawSoon();
  };
  $("palette").addEventListener("change", (event) => {
    S.palette = event.target.value;
    changed();
  });
  $("shared").addEventListener("change", (event) => {
    S.shared = event.target.checked;
    changed();
  });
  $("target").addEventListener("change", (event) => {
    S.target = event.target.value;
    wantMaps();
  });
  new ResizeObserver(() => mapsChanged()).observe($("mapsrow"));
}
