// The lowest answers: pictures that lead to Explore.

const BOXES = {
  truth: { ...ROLES.truth, double: true, tag: "G" },
  answer: { ...ROLES.rank, tag: "R" },
  best: { color: "#FFFFFF", width: 1.5, dash: [2, 3], alpha: 1, tag: "best" },
  before: { color: "#BBBBBB", width: 1.5, dash: [5, 3], alpha: 1, tag: "before" },
};
const ORDER = ["truth", "best", "before", "answer"];
const pictures = { waiting: [], active: 0 };

function worstChanged() {
  const facts = R.facts;
  const wanted = $("worstset").value;
  const mine = facts.worst.filter((one) => !wanted || one.dataset === wanted);
  $("worsttitle").textContent = mine.length + " of the lowest answers of RefineRank";
  pictures.waiting = [];
  $("worst").replaceChildren(...mine.map(worstCard));
  fetchPictures();
}

function worstCard(one) {
  const item = make("li", "shotcard");
  const back = make("button", "thumb");
  back.type = "button";
  back.setAttribute("aria-label", "Open in Explore: " + (one.question || one.video) + ", " + one.words);
  const canvas = make("canvas");
  canvas.style.aspectRatio = one.size[0] + " / " + one.size[1];
  back.append(canvas);
  back.addEventListener("click", () => openWorst(one));
  const words = make("div", "cardwords");
  const asked = make("span", "", one.question || one.video);
  asked.title = one.question;
  words.append(make("b", "", one.words), asked, make("small", "", one.video + " \u00b7 " + one.time));
  item.append(back, words);
  pictures.waiting.push({ one, canvas });
  return item;
}

function openWorst(one) {
  note("Drawing the video up to this moment: some seconds.");
  trigger("worst_case", { document: R.token, dataset: one.dataset, place: one.place });
}

// A few at a time, in the order of the page.
function fetchPictures() {
  while (pictures.active < 2 && pictures.waiting.length) {
    const { one, canvas } = pictures.waiting.shift();
    if (!canvas.isConnected) continue;
    pictures.active += 1;
    askServer("results_picture", { document: R.token, dataset: one.dataset, place: one.place })
      .then((reply) => paintWorst(canvas, one, reply.src)).catch(() => null).finally(() => {
        pictures.active -= 1;
        fetchPictures();
      });
  }
}

async function paintWorst(canvas, one, src) {
  const image = src ? new Image() : null;
  if (image) {
    image.src = src;
    await image.decode();
  }
  const { pen, width, height } = prepare(canvas);
  const scale = Math.min(width / one.size[0], height / one.size[1]);
  const seen = { scale, left: (width - one.size[0] * scale) / 2, top: (height - one.size[1] * scale) / 2 };
  if (image) pen.drawImage(image, seen.left, seen.top, one.size[0] * scale, one.size[1] * scale);
  for (const role of ORDER) if (one.boxes[role]) paintBox(pen, seen, one.boxes[role], { ...BOXES[role] });
  paintTags();
  canvas.dataset.painted = image ? "frame" : "boxes";
}
