// The lowest answers: pictures that lead to Explore.

const BOXES = {
  truth: { ...ROLES.truth, double: true, tag: "G" },
  answer: { ...ROLES.rank, tag: "R" },
  best: { color: "#FFFFFF", width: 1.5, dash: [2, 3], alpha: 1, tag: "best" },
  before: { color: "#BBBBBB", width: 1.5, dash: [5, 3], alpha: 1, tag: "before" },
};
const ORDER = ["truth", "best", "before", "answer"];
pictures.most = 2; // each is a frame that the server draws anew

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
  pictures.waiting.push({
    canvas, size: one.size,
    boxes: ORDER.filter((role) => one.boxes[role]).map((role) => [one.boxes[role], BOXES[role]]),
    ask: () => askServer("results_picture", { document: R.token, dataset: one.dataset, place: one.place }),
  });
  return item;
}

function openWorst(one) {
  note("Drawing the video up to this moment: some seconds.");
  trigger("worst_case", { document: R.token, dataset: one.dataset, place: one.place });
}
