// What stands beside the picture: answers, best, confidence, tags, history.

function answersChanged() {
  const { facts } = C;
  if (!facts) return;
  const taken = E.base && !changedBox() ? E.base.shown : "";
  const buttons = facts.answers.map((one) => {
    const button = make("button", "chip");
    button.type = "button";
    button.dataset.answer = one.key;
    button.setAttribute("aria-pressed", taken === one.key);
    if (one.role !== "blind") button.append(swatch(one.role));
    button.append(make("span", "", one.key + (one.role === "blind" ? "" : " " + one.label) + (one.box ? "" : ": no box")));
    button.title = one.label + (one.score == null ? "" : ", score " + figure(one.score, 2)) + ". Click to take it as your box.";
    button.addEventListener("click", () => takeBase({ shown: one.key, box: one.box }));
    return button;
  });
  if (facts.hidden) {
    const words = make("p", "hint", "Draw first: the " + facts.count + " answers stay hidden until you have drawn a box.");
    const reveal = make("button", "plain", "Show the answers");
    reveal.type = "button";
    reveal.dataset.id = "reveal";
    reveal.disabled = !E.box && !C.notVisible;
    reveal.addEventListener("click", revealAnswers);
    buttons.push(words, reveal);
  }
  if (facts.truth) buttons.push(layerButton("truth", "G truth"));
  const focus = document.activeElement && document.activeElement.dataset.answer;
  $("answers").replaceChildren(...buttons);
  if (focus) {
    const again = $("answers").querySelector('[data-answer="' + focus + '"]');
    if (again) again.focus();
  }
  $("pick").hidden = !facts.candidates;
  $("pickwords").textContent = E.base && E.base.shown.startsWith("candidate") ? E.base.shown + " is your box" : facts.blind ? "from left to right, then Enter" : "by rank, then Enter";
}

function layerButton(name, words) {
  const button = make("button", "chip");
  button.type = "button";
  button.setAttribute("aria-pressed", C.shown.has(name));
  button.append(swatch(name), make("span", "", words));
  button.addEventListener("click", () => {
    if (C.shown.has(name)) C.shown.delete(name);
    else C.shown.add(name);
    answersChanged();
    drawSoon();
  });
  return button;
}

function radios(home, values, now, choose) {
  const buttons = values.map(([value, words]) => {
    const button = make("button", "chip", words);
    button.type = "button";
    button.dataset.value = value;
    button.setAttribute("aria-pressed", value === now);
    button.addEventListener("click", () => {
      choose(value === now ? null : value);
      keepDraft();
      const again = home.querySelector('[data-value="' + value + '"]');
      if (again) again.focus();
    });
    return button;
  });
  home.replaceChildren(...buttons);
}

function bestChanged() {
  const keys = C.facts.answers.map((one) => [one.key, one.key]);
  const values = keys.length > 1 ? [...keys, ["tie", "tie"], ["none", "none"]] : [];
  radios($("best"), values, C.best, (value) => {
    C.best = value;
    bestChanged();
  });
  if (!values.length) $("best").append(make("span", "hint", C.facts.hidden ? "after you have drawn" : "only one answer"));
  radios($("confidence"), [1, 2, 3, 4, 5].map((one) => [one, String(one)]), C.confidence, (value) => {
    C.confidence = value;
    bestChanged();
  });
}

function flagsChanged() {
  $("notvisible").setAttribute("aria-pressed", C.notVisible);
  $("unclear").setAttribute("aria-pressed", C.unclear);
}

function flip(name) {
  if (!C.id) return;
  C[name] = !C[name];
  flagsChanged();
  answersChanged();
  keepDraft();
  drawSoon();
}

function tagsChanged() {
  const suggested = C.suggested.filter((tag) => !C.tags.has(tag));
  const all = [...props.tags.filter((tag) => !suggested.includes(tag)), ...[...C.tags].filter((tag) => !props.tags.includes(tag))];
  const focus = document.activeElement && document.activeElement.dataset.tag;
  $("taghint").textContent = suggested.length ? "dashed: suggested by your box" : "";
  const own = make("input");
  Object.assign(own, { type: "text", maxLength: 64, placeholder: "own tag" });
  own.setAttribute("aria-label", "A tag of your own");
  own.addEventListener("change", () => {
    if (own.value.trim()) toggleTag(own.value.trim());
  });
  $("tags").replaceChildren(...suggested.map((tag) => tagButton(tag, true)), ...all.map((tag) => tagButton(tag, false)), own);
  const again = focus && [...$("tags").querySelectorAll("[data-tag]")].find((one) => one.dataset.tag === focus);
  if (again) again.focus();
}

function tagButton(tag, suggested) {
  const button = make("button", suggested ? "chip quiet" : "chip", tag);
  button.type = "button";
  button.dataset.tag = tag;
  button.setAttribute("aria-pressed", C.tags.has(tag));
  button.addEventListener("click", () => toggleTag(tag));
  return button;
}

function toggleTag(tag) {
  if (C.tags.has(tag)) C.tags.delete(tag);
  else C.tags.add(tag);
  tagsChanged();
  keepDraft();
}

// Which tags would fit if the reviewer's box were right; they are offered, never set. A blind
// reviewer is offered none: that RefineRank missed is half of which answer is RefineRank's.
function suggestLater() {
  clearTimeout(C.suggestTimer);
  if (!C.id || !E.box || !changedBox() || C.facts.hidden || C.facts.blind) return;
  const [id, box] = [C.id, E.box];
  C.suggestTimer = setTimeout(async () => {
    const reply = await askServer("review_suggest", { case_id: id, box });
    if (id !== C.id || reply.error) return;
    C.suggested = reply.tags;
    tagsChanged();
  }, 600);
}

function historyChanged() {
  const lines = [...C.facts.history].reverse().map((one) => {
    const line = make("li");
    const time = one.at.slice(0, 16).replace("T", " ") + " UTC";
    const facts = [time, one.seconds ? one.seconds + " s" : "", one.blind ? "blind" : ""];
    line.append(make("b", "", one.by), " ", make("span", "", one.words), make("small", "", facts.filter(Boolean).join(" \u00b7 ")));
    return line;
  });
  $("history").replaceChildren(...lines);
}
