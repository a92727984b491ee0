// Frames by index: asked for once, kept a while, fetched ahead. Never a <video> element.

const frames = {
  kept: new Map(), waiting: new Map(), queue: [], active: 0, serial: 0, limit: 96,

  reset(clip) {
    this.kept.clear();
    this.waiting.clear();
    this.queue = [];
    const pixels = Math.min(1, (1920 / Math.max(clip.width, clip.height)) ** 2) * clip.width * clip.height;
    this.limit = Math.max(12, Math.min(160, Math.floor((256 << 20) / (4 * pixels))));
  },

  ready(index) {
    const image = this.kept.get(index);
    if (image) {
      this.kept.delete(index);
      this.kept.set(index, image);
    }
    return image || null;
  },

  keep(index, image) {
    this.kept.set(index, image);
    for (const old of this.kept.keys()) {
      if (this.kept.size <= this.limit) break;
      this.kept.delete(old);
    }
  },

  async get(index) {
    const here = this.ready(index);
    if (here) return here;
    if (!this.waiting.has(index)) this.waiting.set(index, this.fetch(index));
    return this.waiting.get(index);
  },

  async fetch(index) {
    const token = S.clip.token;
    const request = ++this.serial;
    try {
      const reply = await askServer("frame", { clip: token, index, request_id: request });
      if (!S.clip || S.clip.token !== token) return null;
      if (reply.error) throw new Error(reply.error);
      if (reply.index !== index || reply.request_id !== request) throw new Error("A wrong frame came back. Step again.");
      return await this.take(index, reply.src);
    } finally {
      if (S.clip && S.clip.token === token) this.waiting.delete(index);
    }
  },

  async take(index, src) {
    const image = new Image();
    image.src = src;
    await image.decode();
    this.keep(index, image);
    return image;
  },

  // Neighbours, nearest first, a few at a time; what is asked for directly never waits for them.
  ahead(indices) {
    this.queue = indices.filter((index) => index >= 0 && index < S.clip.count && !this.kept.has(index));
    this.pump();
  },

  pump() {
    while (this.active < 3 && this.queue.length) {
      const index = this.queue.shift();
      if (this.kept.has(index) || this.waiting.has(index)) continue;
      this.active += 1;
      this.get(index).catch(() => null).finally(() => {
        this.active -= 1;
        this.pump();
      });
    }
  },
};

let wanted = 0;
let chasing = false;
let direction = 1;

// Go to a frame. However fast one asks, the last frame asked for is the one that stays.
function go(index) {
  if (!S.clip) return;
  const next = Math.max(0, Math.min(S.clip.count - 1, Math.round(index)));
  direction = next < wanted ? -1 : 1;
  wanted = next;
  const here = frames.ready(wanted);
  if (here) show(wanted, here);
  else {
    transportMoved(wanted);
    chase();
  }
}

async function chase() {
  if (chasing) return;
  chasing = true;
  const token = S.clip.token;
  try {
    while (S.clip && S.clip.token === token && S.index !== wanted) {
      const index = wanted;
      const image = await frames.get(index);
      if (!S.clip || S.clip.token !== token) break;
      if (image && (index === wanted || !frames.ready(wanted))) show(index, image);
    }
  } catch (error) {
    note(error.message, "error");
    say(error.message);
    wanted = S.index;
    transportMoved(wanted);
  } finally {
    chasing = false;
    if (S.clip && S.clip.token !== token && S.index !== wanted) chase();
  }
}

function show(index, image) {
  S.index = index;
  S.image = image;
  const at = S.answer ? S.answer.byFrame.get(index) : undefined;
  setTime(at === undefined ? null : at);
  transportMoved(wanted);
  drawAll();
  const near = [1, 2, -1, 3, 4, -2, 5, 6, 10, -10].map((step) => index + direction * step);
  frames.ahead(near);
  stageMoved();
}
