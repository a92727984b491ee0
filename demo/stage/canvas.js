// The large canvas: zoom to the pointer, pan, fit, full screen. What lies under the pointer is the
// page's: paintEverything, describeStage, hoverAt, tapped, pointerGone, and grab, which gives a hold
// {move, end, cancel} where a press takes something else than the picture, else null. A hold that is
// still ends well without having moved.

const view = { scale: 1, left: 0, top: 0, fitted: true };
const pointers = new Map();
let drag = null;
let drawTicket = 0;
let stripDue = false;
const backdrop = { key: "", canvas: document.createElement("canvas") };

// The scaled frame is kept: hovering and filtering draw only what lies on it.
function drawBackdrop(pen, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const key = [S.clip.token, S.index, view.scale, view.left, view.top, width, height, ratio].join();
  const { canvas } = backdrop;
  if (backdrop.key !== key) {
    backdrop.key = key;
    const [wide, high] = [width, height].map((side) => Math.max(1, Math.round(side * ratio)));
    if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
    const ink = canvas.getContext("2d");
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.clearRect(0, 0, width, height);
    paintFrame(ink, view, S.image);
  }
  pen.drawImage(canvas, 0, 0, width, height);
}

// The same picture, smaller, under another view of the same place.
function drawSmallBackdrop(pen, other) {
  const canvas = $("canvas");
  const share = other.scale / view.scale;
  pen.imageSmoothingQuality = "medium";
  pen.drawImage(backdrop.canvas, other.left - view.left * share, other.top - view.top * share,
    canvas.clientWidth * share, canvas.clientHeight * share);
}

function drawStage() {
  const canvas = $("canvas");
  const started = performance.now();
  const { pen, width, height } = prepare(canvas);
  if (!S.clip || !S.image) return;
  if (view.fitted) Object.assign(view, fitView(width, height));
  drawBackdrop(pen, width, height);
  paintEverything(pen, view);
  const fit = fitView(width, height).scale;
  $("zoomtext").textContent = view.fitted ? "Fit" : Math.round((view.scale / fit) * 100) + " %";
  canvas.setAttribute("aria-label", describeStage());
  root.dataset.frame = S.index;
  root.dataset.redraw = (performance.now() - started).toFixed(1);
}

function drawAll() {
  drawStage();
  drawStrip();
}

// Many wishes to draw, one drawing a screen refresh. moved: the strip shows another part too.
function drawSoon(moved) {
  stripDue = stripDue || moved === true;
  if (drawTicket) return;
  drawTicket = requestAnimationFrame(() => {
    drawTicket = 0;
    drawStage();
    if (stripDue) drawStrip();
    stripDue = false;
  });
}

function zoomBy(factor, x, y) {
  if (!S.clip) return;
  const canvas = $("canvas");
  const fit = fitView(canvas.clientWidth, canvas.clientHeight);
  const scale = Math.max(fit.scale, Math.min(fit.scale * 40, view.scale * factor));
  if (scale <= fit.scale * 1.001) view.fitted = true;
  else {
    const share = scale / view.scale;
    view.left = x - (x - view.left) * share;
    view.top = y - (y - view.top) * share;
    view.scale = scale;
    view.fitted = false;
    keepInside();
  }
  drawSoon(true);
}

function keepInside() {
  const canvas = $("canvas");
  const [wide, high] = [S.clip.width * view.scale, S.clip.height * view.scale];
  const hold = (at, size, room) => (size <= room ? (room - size) / 2 : Math.max(room - size, Math.min(0, at)));
  view.left = hold(view.left, wide, canvas.clientWidth);
  view.top = hold(view.top, high, canvas.clientHeight);
}

function zoomAction(what) {
  const canvas = $("canvas");
  if (what === "fit") {
    view.fitted = true;
    drawSoon(true);
  } else if (what === "full") fullScreen();
  else zoomBy(what === "in" ? 1.4 : 1 / 1.4, canvas.clientWidth / 2, canvas.clientHeight / 2);
}

function fullScreen() {
  const stage = element.querySelector(".main");
  if (document.fullscreenElement) document.exitFullscreen();
  else if (stage.requestFullscreen) stage.requestFullscreen().catch(() => say("Full screen is not allowed here."));
}

const sourcePoint = (x, y) => [(x - view.left) / view.scale, (y - view.top) / view.scale];

function place(event) {
  const frame = $("canvas").getBoundingClientRect();
  return [event.clientX - frame.left, event.clientY - frame.top];
}

function pointerDown(event) {
  $("view").focus({ preventScroll: true });
  pointers.set(event.pointerId, place(event));
  $("canvas").setPointerCapture(event.pointerId);
  const [x, y] = place(event);
  if (drag && drag.hold) drag.hold.cancel();
  const hold = pointers.size === 1 && event.button === 0 ? grab(x, y) : null;
  drag = { x, y, left: view.left, top: view.top, moved: false, apart: apart(), hold };
}

function apart() {
  if (pointers.size < 2) return 0;
  const [a, b] = [...pointers.values()];
  return Math.hypot(a[0] - b[0], a[1] - b[1]);
}

function pointerMove(event) {
  const [x, y] = place(event);
  if (!pointers.has(event.pointerId)) return hoverAt(x, y);
  pointers.set(event.pointerId, [x, y]);
  if (pointers.size === 2) {
    const [a, b] = [...pointers.values()];
    const now = apart();
    if (drag.apart) zoomBy(now / drag.apart, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
    drag = { ...drag, apart: now, moved: true };
    return undefined;
  }
  if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < 4) return undefined;
  drag.moved = true;
  if (drag.hold) {
    drag.hold.move(x, y);
    return undefined;
  }
  if (view.fitted) return undefined;
  view.left = drag.left + x - drag.x;
  view.top = drag.top + y - drag.y;
  keepInside();
  drawSoon(true);
  return undefined;
}

function pointerUp(event) {
  pointers.delete(event.pointerId);
  const { hold, moved } = drag || {};
  const lifted = event.type === "pointerup";
  if (hold) {
    drag.hold = null;
    if (lifted && (moved || hold.still)) hold.end();
    else hold.cancel();
  }
  if (drag && lifted && !moved && !(hold && hold.still)) tapped(...place(event));
  if (!pointers.size) drag = null;
}

function wireCanvas() {
  const canvas = $("canvas");
  canvas.addEventListener("pointerdown", pointerDown);
  canvas.addEventListener("pointermove", pointerMove);
  canvas.addEventListener("pointerup", pointerUp);
  canvas.addEventListener("pointercancel", pointerUp);
  canvas.addEventListener("pointerleave", () => {
    S.pointer = null;
    pointerGone();
  });
  canvas.addEventListener("dblclick", () => zoomAction("fit"));
  canvas.addEventListener("wheel", (event) => {
    const here = document.activeElement === $("view") || event.ctrlKey || event.metaKey;
    if (!here) return;
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * 0.0022), ...place(event));
  }, { passive: false });
  for (const button of element.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => zoomAction(button.dataset.zoom));
  }
  const watcher = new ResizeObserver(() => {
    if (S.clip && !view.fitted) keepInside();
    drawSoon(true);
    drawLanes();
  });
  watcher.observe($("view"));
  if ($("strip")) watcher.observe($("strip"));
}
