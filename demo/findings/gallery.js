// Thumbnails with the boxes that explain a category.

const BOXES = {
  truth: { ...ROLES.truth, double: true, tag: "G" },
  refinerank: { ...ROLES.rank, tag: "R" }, medvlm: { ...ROLES.medvlm, tag: "V" }, medvlm_groundingdino: { ...ROLES.detector, tag: "D" },
  best: { color: "#FFFFFF", width: 1.5, dash: [2, 3], alpha: 1, tag: "best" },
  old: { color: "#FFD08A", width: 1.5, dash: [6, 4], alpha: 1, tag: "was" },
  parent: { color: "#BBBBBB", width: 1.5, dash: [5, 3], alpha: 1, tag: "before" },
};

function thumbnail(one) {
  const item = make("li", "shotcard");
  const back = make("button", "thumb");
  back.type = "button";
  back.setAttribute("aria-label", "Open in Explore: " + one.target + ", " + one.category + ", " + one.words);
  const canvas = make("canvas");
  canvas.style.aspectRatio = one.size[0] + " / " + one.size[1];
  back.append(canvas);
  back.addEventListener("click", () => {
    keepTab("explore");
    trigger("explore_case", { case_id: one.case_id, clips: window.refinerankClips || [] });
  });
  const words = make("div", "cardwords");
  const title = make("b", "", one.category + (one.sub ? ": " + one.sub : ""));
  title.dataset.category = one.category;
  const target = make("span", "", one.target);
  target.title = one.question;
  const tags = one.tags.length ? "; " + one.tags.join(", ") : "";
  words.append(title, target, make("small", "", one.words + tags), make("small", "", one.video + (one.seconds === null ? "" : " \u00b7 " + one.seconds.toFixed(2) + " s") + (one.reviewed ? " \u00b7 against a reviewed box" : "")));
  const review = make("button", "inline", "Review");
  review.type = "button";
  review.addEventListener("click", () => openReview(one.case_id));
  words.append(review);
  item.append(back, words);
  pictures.waiting.push({
    canvas, size: one.size,
    boxes: one.boxes.map((box) => [box.box, BOXES[box.role] || BOXES.refinerank]),
    ask: () => askServer("thumb", { case_id: one.case_id, clips: window.refinerankClips || [] }),
  });
  return item;
}

// The tab that a reload comes back to.
function keepTab(name) {
  try {
    sessionStorage.setItem("refinerank-tab", name);
  } catch {
    // Then it comes back to the first one.
  }
}

// Another tab of this page shows the case.
function openReview(id) {
  window.refinerankCase = id;
  const tab = [...document.querySelectorAll('#tabs button[role="tab"]')].find((one) => one.textContent.trim() === "Review");
  if (tab) tab.click();
  window.dispatchEvent(new CustomEvent("refinerank-case"));
}

function galleryChanged(facts) {
  pictures.waiting = [];
  $("gallery").replaceChildren(...facts.gallery.map(thumbnail));
  const first = facts.shown ? F.offset + 1 : 0;
  $("pagewords").textContent = first + "\u2013" + (F.offset + facts.gallery.length) + " of " + facts.shown;
  $("before").disabled = F.offset === 0;
  $("after").disabled = F.offset + facts.gallery.length >= facts.shown;
  $("key").textContent = "G truth or reviewed box, R V D the answer, best: nearest box of the whole pool, before: the box before refinement. A click opens Explore at that frame.";
  fetchPictures();
}
