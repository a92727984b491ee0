// What lies over the frame of a case.

const BLIND = { color: "#F3F5F7", width: 1.5, dash: [], alpha: 0.95 };
const HUMAN = { color: "#FFFFFF", width: 3, dash: [], alpha: 1 };

const styleOf = (answer) => (answer.role === "blind" ? BLIND : ROLES[answer.role]);

function paintEverything(pen, view) {
  if (!C.id) return;
  if (onAskedFrame()) {
    paintOthers(pen, view);
    paintMine(pen, view);
    paintTags();
  }
  paintPins(pen, view);
}

function paintOthers(pen, view) {
  if (C.facts.truth && C.shown.has("truth")) paintBox(pen, view, C.facts.truth, { ...ROLES.truth, double: true });
  for (const one of [...C.facts.answers].reverse()) {
    if (one.box && C.shown.has(one.key)) paintBox(pen, view, one.box, { ...styleOf(one), tag: one.key });
  }
  for (const one of C.facts.conflicts) {
    const theirs = one.theirs && one.theirs.box;
    if (theirs) paintBox(pen, view, theirs, { color: "#FFD08A", width: 2, dash: [6, 4], alpha: 1, tag: one.theirs.by });
    if (one.yours.box) paintBox(pen, view, one.yours.box, { color: "#FFB4A6", width: 2, dash: [2, 3], alpha: 1, tag: one.by });
  }
}

function paintMine(pen, view) {
  if (!E.box || C.notVisible) return;
  if (changedBox() || !E.base || !C.shown.has(E.base.shown)) paintBox(pen, view, E.box, { ...HUMAN, tag: "H" });
  const [left, top, wide, high] = corners(view, E.box);
  pen.save();
  for (const [h, v] of HANDLES) {
    const [x, y] = [left + h * wide, top + v * high];
    pen.fillStyle = E.chosen ? "#6CB6F0" : "#FFFFFF";
    pen.strokeStyle = "rgba(8,10,14,0.9)";
    pen.lineWidth = 1.5;
    pen.fillRect(x - 4, y - 4, 8, 8);
    pen.strokeRect(x - 4, y - 4, 8, 8);
  }
  pen.restore();
}

function paintPins(pen, view) {
  const here = C.facts.state.remarks.filter((one) => one.point && (one.frame_index === null || one.frame_index === S.index));
  const pins = here.map((one, at) => ({ point: one.point, name: String(at + 1) }));
  if (E.point && onAskedFrame()) pins.push({ point: E.point, name: "+" });
  for (const { point, name } of pins) {
    const [x, y] = [point[0] * view.scale + view.left, point[1] * view.scale + view.top];
    pen.save();
    pen.beginPath();
    pen.arc(x, y, 9, 0, 2 * Math.PI);
    pen.fillStyle = "#FFFFFF";
    pen.strokeStyle = "rgba(8,10,14,0.9)";
    pen.lineWidth = 2;
    pen.fill();
    pen.stroke();
    pen.fillStyle = "#10151B";
    pen.font = "700 11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.fillText(name, x, y + 4);
    pen.restore();
  }
}

function describeStage() {
  if (!C.id) return "No case is open";
  const where = "Frame " + S.index + ", " + secondsOf(S.index).toFixed(3) + " seconds. ";
  if (!onAskedFrame()) return where + "The boxes lie on frame " + C.frame + ".";
  if (!E.box) return where + "You have no box yet.";
  return where + "Your box: " + E.box.map((edge) => edge.toFixed(1)).join(", ") + (changedBox() ? ", changed." : ", as answered.");
}
