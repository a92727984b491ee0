// Ranked candidates: a windowed list, and everything about the one that is selected.

const ROW_PX = 44;
let listed = [];

function setTime(k) {
  if (S.k === k) return;
  S.k = k;
  S.selected = null;
  S.hover = null;
  if (k !== null) {
    loadPool(k);
    wantMaps();
  }
  inspectorChanged();
  stripChanged();
  targetsChanged();
  mapsChanged();
  focusLater();
}

async function loadPool(k) {
  if (S.pools.has(k)) return;
  const token = S.answer.token;
  const reply = await askServer("pool", { answer: token, k });
  if (!S.answer || S.answer.token !== token) return;
  if (reply.error) {
    note(reply.error, "error");
    return;
  }
  S.pools.set(k, reply);
  if (S.k === k) {
    inspectorChanged();
    drawSoon();
  }
}

function inspectorChanged() {
  const time = timeNow();
  const why = $("why");
  why.replaceChildren();
  if (time) why.textContent = time.why;
  else if (S.answer) away(why);
  else why.textContent = S.clip ? "Ask a question: the candidates, their scores and the reason for the choice appear here." : "";
  $("origin").textContent = S.answer ? S.answer.asked_for + " " + S.answer.note : "";
  $("origin").title = S.answer ? $("origin").textContent + "\n" + S.answer.spent.join(", ") : "";
  root.dataset.answered = time ? "yes" : "no";
  $("enqueue").hidden = !props.reviewing || !S.answer || S.answer.times.some((one) => one.medvlm.state !== "written");
  const pool = poolNow();
  if (pool && !S.selected) S.selected = membersOf(pool)[0].key;
  floorChanged();
  listChanged();
  drawDetail();
  timesChanged();
}

function away(why) {
  why.append("No answer on this frame. ");
  const near = S.answer.times.reduce((a, b) => (Math.abs(b.frame - S.index) < Math.abs(a.frame - S.index) ? b : a));
  const back = make("button", "inline", "Go to " + near.frame_s.toFixed(3) + " s");
  back.type = "button";
  back.addEventListener("click", () => go(near.frame));
  why.append(back);
}

function listChanged() {
  const pool = poolNow();
  listed = pool ? membersOf(pool).filter((one) => (one.rank || S.dropped) && (one.rank === 1 || one.score >= S.floor)) : [];
  const kept = pool ? pool.order.length : 0;
  $("listcount").textContent = pool ? kept + " kept of " + membersOf(pool).length : "";
  $("filler").style.height = listed.length * ROW_PX + "px";
  drawRows();
}

// Only the rows in sight exist.
function drawRows() {
  const list = $("list");
  const first = Math.max(0, Math.floor(list.scrollTop / ROW_PX) - 2);
  const last = Math.min(listed.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW_PX) + 2);
  const rows = [];
  for (let place = first; place < last; place += 1) rows.push(rowOf(listed[place], place));
  $("filler").replaceChildren(...rows);
  markRows();
}

function rowOf(one, place) {
  const row = make("div", "row" + (one.rank ? "" : " filtered"));
  row.id = "rr-row-" + place;
  row.dataset.key = one.key;
  row.style.top = place * ROW_PX + "px";
  row.setAttribute("role", "option");
  row.setAttribute("aria-setsize", listed.length);
  row.setAttribute("aria-posinset", place + 1);
  row.append(make("span", "rank", one.rank ? "R" + one.rank : "\u2013"));
  const crop = make("canvas", "crop");
  row.append(crop);
  const words = make("span", "words");
  words.append(make("b", "", "#" + (one.id + 1) + (one.refined ? " refined" : " original")));
  words.append(make("small", "", sourceWords(one.row)));
  row.append(words);
  const [low, high] = poolNow().range;
  const bar = make("span", "bar");
  const fill = make("i");
  fill.style.width = (high > low ? 100 * (one.score - low) / (high - low) : 100) + "%";
  bar.append(fill);
  const score = make("span", "score", figure(one.score, 2));
  score.append(bar);
  row.append(score);
  const shift = make("span", "shift", one.refined ? figure(one.row.shift, 2) : "");
  shift.title = one.refined ? "IoU of the refined with the original box" : "";
  row.append(shift);
  row.addEventListener("pointerenter", () => hover(one.key));
  row.addEventListener("pointerleave", () => hover(null));
  row.addEventListener("click", () => select(one.key, true));
  paintCrop(crop, [one.box], one.box, 48, 36);
  return row;
}

function sourceWords(row) {
  const source = { raw: "detector", sub_box: "part of #" + (row.parent + 1), anchor: "fixed anchor" }[row.source];
  return row.phrase ? row.phrase + " \u00b7 " + source : source;
}

function markRows(scroll) {
  const list = $("list");
  let active = "";
  for (const row of $("filler").children) {
    const picked = row.dataset.key === S.selected;
    row.setAttribute("aria-selected", picked);
    row.classList.toggle("hovered", row.dataset.key === S.hover);
    if (picked) active = row.id;
  }
  if (active) list.setAttribute("aria-activedescendant", active);
  else list.removeAttribute("aria-activedescendant");
  if (!scroll || !S.selected) return;
  const place = listed.findIndex((one) => one.key === S.selected);
  if (place < 0) return;
  const top = place * ROW_PX;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + ROW_PX > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW_PX - list.clientHeight;
}

// Part of the frame around a box, with boxes on it.
function paintCrop(canvas, boxes, around, wide, high, styles) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = wide * ratio;
  canvas.height = high * ratio;
  canvas.style.width = wide + "px";
  canvas.style.height = high + "px";
  if (!S.image) return;
  const pen = canvas.getContext("2d");
  const margin = 0.18 * Math.max(around[2] - around[0], around[3] - around[1]) + 4;
  const width = around[2] - around[0] + 2 * margin;
  const height = around[3] - around[1] + 2 * margin;
  const scale = Math.min((wide * ratio) / width, (high * ratio) / height);
  const view_ = {
    scale,
    left: (wide * ratio - (around[0] + around[2]) * scale) / 2,
    top: (high * ratio - (around[1] + around[3]) * scale) / 2,
  };
  paintFrame(pen, view_, S.image);
  const usual = { color: "#56B4E9", width: 1.5 * ratio, dash: [], alpha: 1, casing: styles !== undefined };
  boxes.forEach((box, at) => paintBox(pen, view_, box, { ...usual, ...((styles || [])[at] || {}) }));
  if (boxes.length > 1) paintArrow(pen, view_, boxes[0], boxes[1]);
}

function drawDetail() {
  const panel = $("detail");
  panel.replaceChildren();
  const one = memberAt(S.selected);
  if (!one) return;
  const row = one.row;
  const around = row.refined
    ? [0, 1].map((at) => Math.min(row.box[at], row.refined[at])).concat([2, 3].map((at) => Math.max(row.box[at], row.refined[at])))
    : row.box;
  const crop = make("canvas", "bigcrop");
  crop.setAttribute("role", "img");
  crop.setAttribute("aria-label", "Original box, dotted, and refined box of candidate " + (one.id + 1));
  const styles = [{ color: "#DDDDDD", dash: [2, 3] }, { color: "#56B4E9" }];
  paintCrop(crop, row.refined ? [row.box, row.refined] : [row.box], around, 132, 104, styles);
  const facts = make("dl");
  const fact = (name, value, help) => {
    const title = make("dt", "", name);
    if (help) title.title = help;
    facts.append(title, make("dd", "", value));
  };
  const best = membersOf(poolNow())[0];
  fact("Candidate", "#" + (one.id + 1) + ", " + sourceWords(row));
  fact("Confidence", figure(row.confidence, 3) + " (native " + figure(row.native, 3) + ")", "Of the detector; native: its score before RefineNet");
  fact("Score s \u2192 \u015d", figure(row.s, 3) + " \u2192 " + figure(row.s_hat, 3), "RefineNet's logit of the original and of the refined box");
  fact("Behind R1", one === best ? "this is R1" : figure(best.score - one.score, 3));
  fact("Moved", deltaWords(row));
  fact("IoU shift", row.refined ? figure(row.shift, 3) : "refined box was not usable");
  fact("Filter", ["original", "refined"].map((name, at) => name + (row.kept[at] ? " kept" : " filtered")).join(", "));
  panel.append(crop, facts);
}

function deltaWords(row) {
  const sign = (value) => (value >= 0 ? "+" : "\u2212") + Math.abs(value).toFixed(0) + " %";
  const [dx, dy, dw, dh] = row.delta;
  const size = [dw, dh].map((log) => sign(100 * (Math.exp(log) - 1)));
  return "x " + sign(100 * dx) + ", y " + sign(100 * dy) + ", w " + size[0] + ", h " + size[1];
}

function wireInspector() {
  const list = $("list");
  list.addEventListener("scroll", drawRows);
  new ResizeObserver(drawRows).observe(list);
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 6, PageUp: -6, Home: -9999, End: 9999 }[event.key];
    if (!step || !listed.length) return;
    event.preventDefault();
    event.stopPropagation();
    const at = listed.findIndex((one) => one.key === S.selected);
    select(listed[Math.max(0, Math.min(listed.length - 1, at + step))].key);
  });
  $("dropped").addEventListener("change", (event) => {
    S.dropped = event.target.checked;
    listChanged();
  });
  $("drawer").addEventListener("click", () => openDrawer(true));
  $("undrawer").addEventListener("click", () => openDrawer(false));
}

function openDrawer(open) {
  $("inspector").classList.toggle("open", open);
  (open ? $("undrawer") : $("drawer")).focus();
  if (open) drawRows();
}
