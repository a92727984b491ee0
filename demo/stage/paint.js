// Boxes and maps on any canvas. A view says where a source pixel lands: x * scale + left.

function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const wide = Math.max(1, Math.round(width * ratio));
  const high = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

function fitView(width, height) {
  const scale = Math.min(width / S.clip.width, height / S.clip.height);
  return { scale, left: (width - S.clip.width * scale) / 2, top: (height - S.clip.height * scale) / 2 };
}

function paintFrame(pen, view, image) {
  pen.imageSmoothingEnabled = view.scale < 3;
  pen.imageSmoothingQuality = "medium";
  pen.drawImage(image, view.left, view.top, S.clip.width * view.scale, S.clip.height * view.scale);
}

function paintPicture(pen, view, picture, alpha) {
  pen.save();
  pen.globalAlpha = alpha;
  pen.imageSmoothingEnabled = false;
  pen.drawImage(picture, view.left, view.top, S.clip.width * view.scale, S.clip.height * view.scale);
  pen.restore();
}

function corners(view, box) {
  const x = box[0] * view.scale + view.left;
  const y = box[1] * view.scale + view.top;
  return [x, y, (box[2] - box[0]) * view.scale, (box[3] - box[1]) * view.scale];
}

// A dark casing under every line: no hue alone stands out on tissue.
function paintBox(pen, view, box, style) {
  const [x, y, width, height] = corners(view, box);
  pen.save();
  pen.globalAlpha = style.alpha;
  pen.lineJoin = "miter";
  if (style.casing !== false) {
    pen.strokeStyle = style.double ? "#FFFFFF" : "rgba(8,10,14,0.82)";
    pen.lineWidth = style.width + 3;
    pen.strokeRect(x, y, width, height);
  }
  pen.strokeStyle = style.color;
  pen.lineWidth = style.width;
  pen.setLineDash(style.dash);
  pen.strokeRect(x, y, width, height);
  pen.setLineDash([]);
  if (style.handles) paintHandles(pen, x, y, width, height);
  pen.restore();
  if (style.tag) tags.push({ pen, x, y, width, height, style });
}

// Square corners tell a person's box from the models' boxes.
function paintHandles(pen, x, y, width, height) {
  pen.strokeStyle = "rgba(8,10,14,0.9)";
  pen.fillStyle = "#FFFFFF";
  pen.lineWidth = 1.5;
  for (const [left, top] of [[x, y], [x + width, y], [x, y + height], [x + width, y + height]]) {
    pen.fillRect(left - 4, top - 4, 8, 8);
    pen.strokeRect(left - 4, top - 4, 8, 8);
  }
}

// Tags wait until all lines are drawn, then each takes a corner that is still free; a minor one
// without a free corner is left out rather than laid over another.
const tags = [];

function paintTags() {
  const taken = [];
  for (const tag of tags.splice(0).reverse()) {
    const { pen, style } = tag;
    pen.save();
    pen.font = "600 12px system-ui, sans-serif";
    const wide = pen.measureText(style.tag).width + 10;
    const spot = freeSpot(tag, wide, taken);
    if (!spot) {
      pen.restore();
      continue;
    }
    const [left, top] = spot;
    taken.push([left, top, wide]);
    pen.fillStyle = style.double ? "#FFFFFF" : "rgba(8,10,14,0.9)";
    pen.fillRect(left, top, wide, 17);
    pen.fillStyle = style.color;
    pen.fillText(style.tag, left + 5, top + 13);
    pen.restore();
  }
}

function freeSpot({ pen, x, y, width, height, style }, wide, taken) {
  const form = pen.getTransform();
  const [right, bottom] = [pen.canvas.width / form.a, pen.canvas.height / form.d];
  const spots = [[x - 1, y - 19], [x + width - wide + 1, y - 19], [x - 1, y + height + 2],
    [x + width - wide + 1, y + height + 2], [x + 2, y + 2], [x + 2, y + height - 19]];
  const inside = spots.map(([left, top]) => [Math.max(0, Math.min(right - wide, left)), Math.max(0, Math.min(bottom - 17, top))]);
  const free = ([left, top]) => taken.every(([l, t, w]) => left + wide < l || left > l + w || top + 18 < t || top > t + 18);
  return inside.find(free) || (style.minor ? null : inside[0]);
}

function paintArrow(pen, view, from, to) {
  const start = corners(view, from);
  const end = corners(view, to);
  const [x0, y0] = [start[0] + start[2] / 2, start[1] + start[3] / 2];
  const [x1, y1] = [end[0] + end[2] / 2, end[1] + end[3] / 2];
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (length < 3) return;
  const [dx, dy] = [(x1 - x0) / length, (y1 - y0) / length];
  for (const [color, width] of [["rgba(8,10,14,0.85)", 4.5], ["#FFFFFF", 1.8]]) {
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.lineTo(x1 - 7 * dx + 4 * dy, y1 - 7 * dy - 4 * dx);
    pen.moveTo(x1, y1);
    pen.lineTo(x1 - 7 * dx - 4 * dy, y1 - 7 * dy + 4 * dx);
    pen.stroke();
  }
}

const dots = new Map();

// A dotted line as a pattern: hundreds of dashed boxes would take longer than a screen refresh.
function dotPattern(pen, color) {
  if (!dots.has(color)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 4;
    const ink = tile.getContext("2d");
    ink.fillStyle = color;
    for (let x = 0; x < 4; x += 1) {
      for (let y = 0; y < 4; y += 1) if ((x + y) % 4 < 2) ink.fillRect(x, y, 1, 1);
    }
    dots.set(color, tile);
  }
  return pen.createPattern(dots.get(color), "repeat");
}

function paintDotted(pen, view, members, color, alpha) {
  pen.save();
  pen.globalAlpha = alpha;
  pen.strokeStyle = dotPattern(pen, color);
  pen.lineWidth = 1;
  pen.beginPath();
  for (const one of members) {
    const [x, y, width, height] = corners(view, one.box);
    pen.rect(Math.round(x) + 0.5, Math.round(y) + 0.5, Math.round(width), Math.round(height));
  }
  pen.stroke();
  pen.restore();
}
