// The reviewer's box: drag, handles, keys, typed numbers, a new one. Float pixels of the frame.

const E = { box: null, base: null, past: [], future: [], mode: "", chosen: false, point: null };
const LEAST_PX = 1;
const HANDLES = [[0, 0], [0.5, 0], [1, 0], [1, 0.5], [1, 1], [0.5, 1], [0, 1], [0, 0.5]];
const sameBox = (one, other) => one === other || Boolean(one && other && one.every((edge, at) => edge === other[at]));

// base: {shown: key of an answer or "candidate n", box}; null: nothing was on show.
function startEdit(base) {
  Object.assign(E, { box: base && base.box ? [...base.box] : null, base, past: [], future: [], mode: "", chosen: false });
}

const changedBox = () => !sameBox(E.box, E.base ? E.base.box : null);
const onAskedFrame = () => S.index === C.frame;

function clipped(box) {
  const inside = (edge, most) => Math.max(0, Math.min(most, edge));
  return [inside(box[0], S.clip.width), inside(box[1], S.clip.height), inside(box[2], S.clip.width), inside(box[3], S.clip.height)];
}

function remember() {
  E.past.push({ box: E.box, base: E.base });
  E.future = [];
}

// A whole change, one step of undo.
function changeBox(box) {
  const next = box ? clipped(box) : null;
  if (sameBox(next, E.box)) return;
  remember();
  E.box = next;
  boxChanged();
}

function stepBox(from, to) {
  const before = from.pop();
  to.push({ box: E.box, base: E.base });
  Object.assign(E, before);
  boxChanged();
}

// Take an answer or a candidate as the box.
function takeBase(base) {
  if (!C.id) return;
  remember();
  E.base = base;
  E.box = base.box ? [...base.box] : null;
  boxChanged();
}

function boxChanged() {
  numbersChanged();
  answersChanged();
  keepDraft();
  suggestLater();
  drawSoon();
}

function numbersChanged() {
  for (const one of element.querySelectorAll("[data-corner]")) {
    const value = E.box ? E.box[Number(one.dataset.corner)] : null;
    if (document.activeElement !== one) one.value = value === null ? "" : String(Number(value.toFixed(2)));
    one.disabled = !C.id;
  }
  $("draw").setAttribute("aria-pressed", E.mode === "draw");
  $("pin").setAttribute("aria-pressed", E.mode === "pin");
  $("undo").disabled = !E.past.length && !mayUndo();
  $("redo").disabled = !E.future.length && !mayRedo();
  root.dataset.box = E.chosen ? "chosen" : "";
}

function typed(event) {
  const at = Number(event.target.dataset.corner);
  const value = Number(event.target.value);
  if (event.target.value === "" || !Number.isFinite(value)) {
    numbersChanged();
    return;
  }
  const box = E.box ? [...E.box] : [0, 0, S.clip.width, S.clip.height];
  if (E.box && Number(box[at].toFixed(2)) === value) return; // shown shortened, not changed
  box[at] = value;
  if (box[2] - box[0] < LEAST_PX || box[3] - box[1] < LEAST_PX) {
    note("A box needs x0 < x1 and y0 < y1.", "warning");
    event.target.value = E.box ? String(Number(E.box[at].toFixed(2))) : "";
    return;
  }
  changeBox(box);
}

// Arrow keys: move by a pixel, with Alt the lower right corner, with Shift by ten.
function nudge(dx, dy, resize) {
  if (!E.box) return;
  const [x0, y0, x1, y1] = E.box;
  if (resize) {
    changeBox([x0, y0, Math.max(x0 + LEAST_PX, x1 + dx), Math.max(y0 + LEAST_PX, y1 + dy)]);
    return;
  }
  const moveX = Math.max(-x0, Math.min(S.clip.width - x1, dx));
  const moveY = Math.max(-y0, Math.min(S.clip.height - y1, dy));
  changeBox([x0 + moveX, y0 + moveY, x1 + moveX, y1 + moveY]);
}

// What a press on the canvas takes hold of; null: the picture itself.
function grab(x, y) {
  if (!C.id || !S.image || !onAskedFrame()) return null;
  if (E.mode === "pin") return holdPin(x, y);
  if (E.mode === "draw" || (!E.box && !C.notVisible)) return holdNew(x, y);
  const at = handleAt(x, y);
  if (at) return holdEdges(at);
  const [left, top, wide, high] = corners(view, E.box || [0, 0, 0, 0]);
  const inside = E.box && x >= left && x <= left + wide && y >= top && y <= top + high;
  return inside ? holdWhole(x, y) : null;
}

function handleAt(x, y) {
  if (!E.box) return null;
  const [left, top, wide, high] = corners(view, E.box);
  let best = null;
  for (const [h, v] of HANDLES) {
    const far = Math.hypot(x - left - h * wide, y - top - v * high);
    if (far <= 9 && (!best || far < best.far)) best = { h, v, far };
  }
  return best;
}

// A hold moves with the pointer, in source pixels, and is one step of undo when it ends.
function hold(move) {
  const before = E.box;
  return {
    move(x, y) {
      E.box = clipped(move(...sourcePoint(x, y)));
      numbersChanged();
      drawSoon();
    },
    end() {
      const after = E.box;
      E.box = before;
      changeBox(after);
      E.chosen = true;
      numbersChanged();
    },
    cancel() {
      E.box = before;
      boxChanged();
    },
  };
}

function holdEdges({ h, v }) {
  const [x0, y0, x1, y1] = E.box;
  return hold((x, y) => [
    h === 0 ? Math.min(x, x1 - LEAST_PX) : x0, v === 0 ? Math.min(y, y1 - LEAST_PX) : y0,
    h === 1 ? Math.max(x, x0 + LEAST_PX) : x1, v === 1 ? Math.max(y, y0 + LEAST_PX) : y1,
  ]);
}

function holdWhole(atX, atY) {
  const [startX, startY] = sourcePoint(atX, atY);
  const [x0, y0, x1, y1] = E.box;
  return hold((x, y) => {
    const dx = Math.max(-x0, Math.min(S.clip.width - x1, x - startX));
    const dy = Math.max(-y0, Math.min(S.clip.height - y1, y - startY));
    return [x0 + dx, y0 + dy, x1 + dx, y1 + dy];
  });
}

function holdNew(atX, atY) {
  const [startX, startY] = sourcePoint(atX, atY);
  const held = hold((x, y) => [Math.min(startX, x), Math.min(startY, y), Math.max(startX, x), Math.max(startY, y)]);
  const { end, cancel } = held;
  held.end = () => {
    const [x0, y0, x1, y1] = E.box || [0, 0, 0, 0];
    E.mode = "";
    if (x1 - x0 < LEAST_PX || y1 - y0 < LEAST_PX) cancel();
    else {
      end();
      drawnNow();
    }
  };
  return held;
}

function holdPin(atX, atY) {
  const set = (x, y) => {
    E.point = sourcePoint(x, y).map((one, at) => Math.max(0, Math.min(at ? S.clip.height : S.clip.width, one)));
    drawSoon();
  };
  set(atX, atY);
  return { still: true, move: set, cancel() { E.point = null; }, end() {
    E.mode = "";
    numbersChanged();
    keepDraft();
    $("comment").focus();
  } };
}

function setMode(mode) {
  if (!C.id) return;
  E.mode = E.mode === mode ? "" : mode;
  if (E.mode && !onAskedFrame()) go(C.frame);
  numbersChanged();
  say(E.mode === "draw" ? "Drag on the frame to draw the box." : E.mode === "pin" ? "Click the point that the comment is about." : "");
}

function chooseBox(on) {
  E.chosen = Boolean(on && E.box);
  numbersChanged();
  drawSoon();
  if (E.chosen) say("The box is selected. Arrows move it, Alt with arrows resizes it, Escape leaves.");
}

function undoStep() {
  if (E.past.length) stepBox(E.past, E.future);
  else undoDecision();
}

function redoStep() {
  if (E.future.length) stepBox(E.future, E.past);
  else redoDecision();
}

function wireEdit() {
  for (const one of element.querySelectorAll("[data-corner]")) one.addEventListener("change", typed);
  $("draw").addEventListener("click", () => setMode("draw"));
  $("pin").addEventListener("click", () => setMode("pin"));
  $("undo").addEventListener("click", undoStep);
  $("redo").addEventListener("click", redoStep);
}
