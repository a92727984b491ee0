// The layers of an answer, on any canvas.

// The members that the ranked layer draws: the answer always, then up to k above the floor.
function rankedShown(pool) {
  return membersOf(pool).filter((one) => one.rank === 1 || (one.rank && one.rank <= S.topk && one.score >= S.floor));
}

function paintCandidates(pen, view, pool) {
  const layer = (refined, role) => {
    const shown = membersOf(pool).filter((one) => one.refined === refined && one.score >= S.floor);
    paintDotted(pen, view, shown.filter((one) => !one.rank), role.color, role.alpha * 0.45);
    paintDotted(pen, view, shown.filter((one) => one.rank), role.color, role.alpha);
  };
  if (S.layers.has("pool")) layer(false, ROLES.pool);
  if (S.layers.has("refined")) layer(true, ROLES.refined);
  if (!S.layers.has("rank")) return;
  for (const one of rankedShown(pool).reverse()) {
    if (one.rank > 1) paintBox(pen, view, one.box, { ...ROLES.rank, width: 1.5, tag: "R" + one.rank, minor: true });
  }
}

function paintAnswers(pen, view, time) {
  if (S.layers.has("truth") && time.truth) paintBox(pen, view, time.truth, { ...ROLES.truth, double: true });
  const human = S.layers.has("human") && humanNow();
  if (human) paintBox(pen, view, human.box, { ...ROLES.human });
  if (S.layers.has("detector")) paintBox(pen, view, time.detector.box, { ...ROLES.detector });
  if (S.layers.has("medvlm") && time.medvlm.box) paintBox(pen, view, time.medvlm.box, { ...ROLES.medvlm });
}

// What is hovered or selected stands out; the answer keeps its own look unless it is hovered.
function paintPicked(pen, view) {
  for (const key of new Set([S.selected, S.hover])) {
    const one = memberAt(key);
    if (!one) continue;
    if (one.rank === 1 && key !== S.hover && !S.layers.has("rank")) continue;
    const name = (one.rank ? "R" + one.rank : "filtered") + "  #" + (one.id + 1) + (one.refined ? " refined" : " original");
    if (one.refined) paintBox(pen, view, one.row.box, { ...ROLES.pool, alpha: 1, width: 1.5 });
    if (one.rank !== 1 || key === S.hover) paintBox(pen, view, one.box, { color: "#FFFFFF", width: 2, dash: [], alpha: 1, tag: name });
    if (one.refined) paintArrow(pen, view, one.row.box, one.box);
  }
}

function paintEverything(pen, view) {
  const overlay = overlayPicture();
  if (overlay) paintPicture(pen, view, overlay, S.opacity);
  const pool = poolNow();
  const time = timeNow();
  if (pool) paintCandidates(pen, view, pool);
  if (time) paintAnswers(pen, view, time);
  if (pool && time && S.layers.has("rank")) {
    const best = membersOf(pool)[0];
    paintBox(pen, view, best.box, { ...ROLES.rank, tag: "R1" });
  }
  if (pool) paintPicked(pen, view);
  paintTags();
}
