// Everything put together: keys, buttons, what the shared parts of the stage ask of a page.

const KEYS = [
  ["A", "accept the answer's box"], ["E", "fix and accept: your box holds"], ["R", "reject"], ["U", "unsure"], ["S", "skip"],
  ["N, P", "next, previous case"], ["Z, Shift + Z", "undo, redo: box changes first, then decisions"], ["1, 2, 3", "take this answer as your box"],
  ["F", "another candidate by number"], ["D", "draw a new box"], ["Enter", "select the box; Esc leaves it"],
  ["arrows", "with the box selected: 1 px, Shift 10 px; Alt resizes"], ["\u2190 \u2192", "else: one frame, Shift ten"],
  ["G", "the asked frame"], ["V", "target not visible"], ["Q", "question unclear"], ["C", "comment"], ["/", "search the queue"],
  ["+ \u2212 0", "zoom in, out, fit"], ["?", "this help"],
];

// What frames.js and canvas.js tell any page.
function setTime() {}
function stageMoved() {}
function drawStrip() {}
function drawLanes() {}

function transportMoved(index) {
  const words = "frame " + index + (S.clip.token ? " / " + (S.clip.count - 1) + " \u00b7 " + secondsOf(index).toFixed(3) + " s" : "");
  $("where").textContent = words + (C.id && index !== C.frame ? " \u00b7 boxes lie on frame " + C.frame : "");
}

function hoverAt(x, y) {
  const drawing = E.mode || !E.box;
  const at = C.id && onAskedFrame() && !drawing ? handleAt(x, y) : null;
  const across = at && at.h !== 0.5;
  const down = at && at.v !== 0.5;
  const turn = at && (at.h === at.v ? "nwse-resize" : "nesw-resize");
  $("canvas").style.cursor = at ? (across && down ? turn : across ? "ew-resize" : "ns-resize") : drawing ? "crosshair" : "default";
}

function pointerGone() {}

function tapped(x, y) {
  const [left, top, wide, high] = E.box ? corners(view, E.box) : [0, 0, -1, -1];
  chooseBox(x >= left && x <= left + wide && y >= top && y <= top + high);
}

function nothingOpen(title, words, buttons) {
  Object.assign(C, { id: "", facts: null });
  startEdit(null);
  root.dataset.view = "empty";
  const row = make("div", "emptyrow");
  row.append(...buttons);
  $("empty").replaceChildren(make("h2", "", title), make("p", "", words), row);
  $("empty").hidden = false;
  $("question").textContent = "";
  $("about").textContent = "";
  for (const name of ["answers", "best", "confidence", "tags", "history", "conflicts"]) $(name).replaceChildren();
  numbersChanged();
}

function stepFrame(what) {
  if (!C.id || !S.clip.token) return;
  go(what === "asked" ? C.frame : wanted + Number(what));
}

function help() {
  const table = make("dl", "keytable");
  for (const [keys, words] of KEYS) table.append(make("dt", "", keys), make("dd", "", words));
  openDialog("Keys", [table, make("p", "", "Drag the box or its handles; drag beside it pans a zoomed frame; the wheel over the focused frame zooms.")]);
}

const typing = (node) => Boolean(node.closest && node.closest("input:not([type=checkbox]), textarea, select, [contenteditable]"));
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function keyDown(event) {
  const node = event.target;
  if (event.ctrlKey || event.metaKey || $("dialog").open) return;
  if (!element.offsetParent && !document.fullscreenElement) return; // another tab of the page is open
  if (typing(node)) {
    if (event.key === "Escape") node.blur();
    return;
  }
  const action = arrowAction(event) || (event.altKey ? null : keyAction(event, node));
  if (!action) return;
  event.preventDefault();
  action();
}

function arrowAction(event) {
  const arrow = ARROWS[event.key];
  if (!arrow) return null;
  const far = event.shiftKey ? 10 : 1;
  if (E.chosen) return () => nudge(arrow[0] * far, arrow[1] * far, event.altKey);
  if (event.altKey || !arrow[0]) return null;
  return () => stepFrame(arrow[0] * far);
}

function keyAction(event, node) {
  const pressing = node.closest && node.closest("button, summary, a");
  const answer = C.facts && C.facts.answers[Number(event.key) - 1];
  if (answer) return () => takeBase({ shown: answer.key, box: answer.box });
  const actions = {
    a: () => decide("accept"), e: () => decide("fix"), r: () => decide("reject"), u: () => decide("unsure"), s: () => decide("skip"),
    n: () => openNext(1), p: () => openNext(-1), z: event.shiftKey ? redoStep : undoStep, f: () => $("number").focus(),
    d: () => setMode("draw"), enter: pressing ? null : () => chooseBox(true), g: () => stepFrame("asked"),
    v: () => flip("notVisible"), q: () => flip("unclear"), c: () => $("comment").focus(), "/": () => $("text").focus(),
    "+": () => zoomAction("in"), "=": () => zoomAction("in"), "-": () => zoomAction("out"), 0: () => zoomAction("fit"), "?": help,
    escape: () => {
      E.mode = "";
      chooseBox(false);
    },
  };
  return actions[event.key.toLowerCase()];
}

// Another tab of the page asks for a case, or has put some into the queue.
async function openWished() {
  const id = window.refinerankCase;
  window.refinerankCase = "";
  if (id) await openCase(id);
  return Boolean(id);
}

async function start() {
  people();
  visitorArrived();
  wireOutbox();
  const wished = await openWished();
  if (await loadQueue() && !wished && Q.items.length) openCase(Q.items[0].case_id);
}

me.who = () => ({ name: me.name, token: me.token });
followTheme();
root.stage = S; // for the console and for tests: what is on the screen
root.edit = E;
root.open = C;
wireCanvas();
wireQueue();
wireCase();
wireEdit();
wireDecide();
wireFiles();
wirePeople();
for (const button of element.querySelectorAll("[data-step]")) button.addEventListener("click", () => stepFrame(button.dataset.step));
$("next").addEventListener("click", () => openNext(1));
$("previous").addEventListener("click", () => openNext(-1));
$("help").addEventListener("click", help);
document.addEventListener("keydown", keyDown);
window.addEventListener("refinerank-case", openWished);
window.addEventListener("refinerank-queue", () => loadQueue());
watch("visitor", visitorArrived);
start();
