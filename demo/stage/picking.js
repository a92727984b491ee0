// What lies under the pointer: boxes of the pool, hovered and selected.

// The drawn box under a point: an edge within 6 px first, else the smallest box around it.
function pick(x, y) {
  const pool = poolNow();
  if (!pool) return null;
  const drawn = new Map(S.layers.has("rank") ? rankedShown(pool).map((one) => [one.key, one]) : []);
  for (const one of membersOf(pool)) {
    if (one.score >= S.floor && S.layers.has(one.refined ? "refined" : "pool")) drawn.set(one.key, one);
  }
  let best = null;
  for (const one of drawn.values()) {
    const [left, top, wide, high] = corners(view, one.box);
    const inside = x >= left - 6 && x <= left + wide + 6 && y >= top - 6 && y <= top + high + 6;
    if (!inside) continue;
    const edge = Math.min(Math.abs(x - left), Math.abs(x - left - wide), Math.abs(y - top), Math.abs(y - top - high));
    const cost = edge <= 6 ? edge : 1000 + wide * high;
    if (!best || cost < best.cost) best = { cost, key: one.key };
  }
  return best ? best.key : null;
}

function hoverAt(x, y) {
  if (!S.clip) return;
  S.pointer = sourcePoint(x, y);
  hover(pick(x, y));
  mapsPointer();
}

const grab = () => null; // nothing here can be moved

function tapped(x, y) {
  select(pick(x, y));
}

function pointerGone() {
  hover(null);
  mapsPointer();
}

function hover(key) {
  if (S.hover === key) return;
  S.hover = key;
  markRows();
  drawSoon();
}

function select(key, quietly) {
  S.selected = key;
  markRows(!quietly);
  drawDetail();
  drawSoon();
  if (S.target === "original" || S.target === "refined") wantMaps();
  const one = memberAt(key);
  if (one) say((one.rank ? "Rank " + one.rank : "Filtered box") + ", candidate " + (one.id + 1) + ", score " + figure(one.score, 2));
}

function describeStage() {
  const words = "Frame " + S.index + " of " + S.clip.title + ", " + secondsOf(S.index).toFixed(3) + " seconds.";
  const time = timeNow();
  if (!time) return words + " No answer on this frame.";
  const without = { written: "MedVLM has no box.", writing: "MedVLM is still writing.", stopped: "MedVLM was not asked." };
  const has = time.medvlm.box ? "MedVLM has a box." : without[time.medvlm.state];
  return words + " RefineRank score " + figure(time.refinerank.score, 2) + ". " + has;
}
