// What one takes along: a link, a picture, files.

function fileStem() {
  const clip = (S.clip.sample || S.clip.title).replace(/\.[a-z0-9]{2,5}$/i, "").replace(/[^\p{L}\p{N}._-]+/gu, "_");
  const caution = props.profile.caution ? "-" + props.profile.caution.replace(/\s+/g, "_") : "";
  return "refinerank-" + clip.slice(0, 60) + caution;
}

async function takeAway(kind) {
  $("menu").open = false;
  if (!S.clip || !S.image) return noClip();
  if (kind === "png") return takePicture();
  if (!S.answer) return note("Ask a question first: there is nothing to take away yet.", "error");
  const reply = await askServer("take", { answer: S.answer.token, kind });
  if (reply.error) return note(reply.error, "error");
  const types = { json: "application/json", csv: "text/csv", npz: "application/zip" };
  download(fileStem() + "." + kind, new Blob([bytesOf(reply.content)], { type: types[kind] }));
  return say("Saved.");
}

// The whole frame at its own size with what is drawn now, and below it where it comes from.
function takePicture() {
  const foot = 58;
  const zoom = Math.max(1, 960 / S.clip.width);
  const canvas = make("canvas");
  canvas.width = Math.round(S.clip.width * zoom);
  canvas.height = Math.round(S.clip.height * zoom) + foot;
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#0E1217";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  const whole = { scale: zoom, left: 0, top: 0 };
  paintFrame(pen, whole, S.image);
  paintEverything(pen, whole);
  pen.fillStyle = "#0E1217";
  pen.fillRect(0, canvas.height - foot, canvas.width, foot);
  const time = timeNow();
  const asked = time && S.answer ? S.answer.text : "no question";
  const lines = [
    S.clip.title + ", frame " + S.index + ", " + secondsOf(S.index).toFixed(3) + " s: " + asked,
    props.profile.badge + " (" + props.profile.ids.join(", ") + "). Research use only.",
  ];
  lines.forEach((line, at) => {
    pen.fillStyle = at ? (props.profile.caution ? "#FFB4A6" : "#C6CED8") : "#FFFFFF";
    pen.font = (at ? "" : "600 ") + "14px system-ui, sans-serif";
    pen.fillText(line, 12, canvas.height - foot + 24 + at * 22, canvas.width - 24);
  });
  canvas.toBlob((blob) => {
    download(fileStem() + "-frame" + S.index + ".png", blob);
    say("Saved.");
  }, "image/png");
}

function linkNow() {
  if (!S.clip || !S.clip.sample) return null;
  const query = new URLSearchParams({ clip: S.clip.sample, frame: S.index });
  if (S.answer) {
    query.set("q", S.answer.text);
    query.set("t", S.answer.times.map((time) => Number(time.requested_s.toFixed(6))).join(","));
  } else if ($("question").value.trim()) query.set("q", $("question").value.trim());
  query.set("layers", LAYER_KEYS.filter((name) => S.layers.has(name)).map((name) => ROLES[name].letter).join(""));
  if (S.overlay) query.set("map", S.overlay);
  query.set("profile", props.profile.name);
  return location.origin + location.pathname + "?" + query;
}

async function copyLink() {
  if (!S.clip) return noClip();
  const link = linkNow();
  if (!link) {
    return openDialog("No link for an upload", [make("p", "", "A link carries the case in itself, so it works for the bundled clips only. Your upload stays with you and is removed when you leave.")]);
  }
  try {
    await navigator.clipboard.writeText(link);
    say("Link copied.");
    $("link").textContent = "Copied";
    setTimeout(() => { $("link").textContent = "Copy link"; }, 1500);
  } catch {
    const field = make("input", "linkfield");
    field.readOnly = true;
    field.value = link;
    field.setAttribute("aria-label", "Link to this case");
    openDialog("Link to this case", [make("p", "", "The browser does not let the page use the clipboard. Copy the link here:"), field]);
    field.select();
  }
  return undefined;
}

let addressTimer = 0;

// The address follows what is looked at, for bundled clips only; of an upload nothing stays in it.
function stageMoved() {
  clearTimeout(addressTimer);
  if (linkNow()) addressTimer = setTimeout(setAddress, 400);
  else setAddress();
}

function setAddress() {
  try {
    history.replaceState(history.state, "", linkNow() || location.pathname);
  } catch {
    // A page inside another one may not be allowed to: the link button still works.
  }
}

// The answer as cases of the review queue, under the name that the Review tab uses.
async function enqueueAnswer() {
  if (!S.answer) return note("Ask a question first: there is no answer to review yet.", "error");
  const who = { name: kept("refinerank-name") || "", token: window.refinerankToken || "" };
  const reply = await askServer("review_enqueue", { answer: S.answer.token, who });
  if (reply.error) return who.name ? note(reply.error, "error") : askName(reply.error);
  if (!S.clip.sample) window.refinerankClips = [...new Set([...(window.refinerankClips || []), S.clip.token])].slice(-8);
  window.dispatchEvent(new CustomEvent("refinerank-queue"));
  if (reply.keep) return offerPictures(reply, who);
  return note(reply.words + " Open the Review tab to decide.");
}

// An upload goes with its visitor; its asked frames stay only for who says so here.
function offerPictures(reply, who) {
  const answer = S.answer.token;
  const many = reply.keep === 1 ? "the asked frame" : "the " + reply.keep + " asked frames";
  const keepThem = make("button", "primary", reply.keep === 1 ? "Keep this frame" : "Keep these frames");
  keepThem.type = "button";
  keepThem.addEventListener("click", async () => {
    $("dialog").close();
    const told = await askServer("review_keep", { answer, who });
    note(told.error || told.words + " Open the Review tab to decide.", told.error ? "error" : "info");
  });
  const text = "Your upload is removed when you leave, and its cases have no picture then. You can have " + many
    + " kept with the review. Whoever opens Review here will see them. Keep none that shows a face or a name; Close keeps none.";
  openDialog("Keep a picture for later?", [make("p", "", reply.words), make("p", "", text), keepThem]);
  keepThem.focus();
}

function askName(words) {
  const form = make("form");
  const name = make("input", "linkfield");
  name.maxLength = 200;
  name.setAttribute("aria-label", "Your name");
  const go = make("button", "primary", "Go on");
  form.append(name, go);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!name.value.trim()) return;
    keep("refinerank-name", name.value.normalize("NFC").trim().replace(/\s+/g, " "));
    $("dialog").close();
    enqueueAnswer();
  });
  openDialog("Who are you?", [make("p", "", words), form]);
  name.focus();
}

function wireTake() {
  $("enqueue").addEventListener("click", enqueueAnswer);
  for (const button of element.querySelectorAll("[data-take]")) {
    button.addEventListener("click", () => takeAway(button.dataset.take));
  }
  $("link").addEventListener("click", copyLink);
  document.addEventListener("click", (event) => {
    if (!$("menu").contains(event.target)) $("menu").open = false;
  });
}
