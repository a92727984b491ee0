// Small pictures with boxes on them, fetched a few at a time in the order of the page.

const pictures = { waiting: [], active: 0, most: 3 };

// A wanted picture: its canvas, the size of the frame, [box, style] pairs, and how to ask for it.
function fetchPictures() {
  while (pictures.active < pictures.most && pictures.waiting.length) {
    const wanted = pictures.waiting.shift();
    if (!wanted.canvas.isConnected) continue;
    pictures.active += 1;
    wanted.ask().then((reply) => paintWanted(wanted, reply.src)).catch(() => null).finally(() => {
      pictures.active -= 1;
      fetchPictures();
    });
  }
}

async function paintWanted({ canvas, size: [wide, high], boxes }, src) {
  const image = src ? new Image() : null;
  if (image) {
    image.src = src;
    await image.decode();
  }
  const { pen, width, height } = prepare(canvas);
  const scale = Math.min(width / wide, height / high);
  const seen = { scale, left: (width - wide * scale) / 2, top: (height - high * scale) / 2 };
  if (image) pen.drawImage(image, seen.left, seen.top, wide * scale, high * scale);
  for (const [box, style] of boxes) paintBox(pen, seen, box, { ...style });
  paintTags();
  canvas.dataset.painted = image ? "frame" : "boxes";
}
