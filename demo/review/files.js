// In and out: export, import, and the answers that come with the bundled clips.

function showFiles() {
  openDialog("Import, export", [exportForm(), importForm(), fillForm()]);
}

function formOf(title, words) {
  const form = make("form", "filesform");
  form.append(make("h2", "", title), make("p", "", words));
  return form;
}

function listOf(name, options) {
  const list = make("select");
  list.setAttribute("aria-label", name);
  list.append(...options.map(([value, words]) => new Option(words, value)));
  return list;
}

function exportForm() {
  const form = formOf("Export", "Everything that is in the queue, or decided cases only.");
  const format = listOf("Format", props.formats.map((one) => [one.name, one.title]));
  format.dataset.id = "outformat";
  const what = listOf("Which boxes", [["review", "reviewed boxes"], ["truth", "truth"], ...props.methods]);
  const decided = make("input");
  decided.type = "checkbox";
  const only = make("label", "knob");
  only.append(decided, " accepted and fixed only");
  const go = make("button", "primary", "Export");
  const told = make("div", "told");
  form.append(format, " ", what, " ", only, " ", go, told);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    told.textContent = "Writing";
    const reply = await askServer("review_out", { format: format.value, what: what.value, decided: decided.checked });
    if (reply.error) {
      told.textContent = reply.error;
      return;
    }
    download(reply.name, new Blob([bytesOf(reply.content)], { type: "application/octet-stream" }));
    told.replaceChildren(make("p", "", reply.words), ...reply.losses.map((one) => make("p", "hint", one)));
  });
  return form;
}

const SPACES = [["", "as the format says"], ["pixels", "pixels: x0 y0 x1 y1"], ["pixels_xywh", "pixels: x y width height"],
  ["unit", "fractions 0\u20131: x0 y0 x1 y1"], ["unit_cxcywh", "fractions: centre, width, height"], ["thousand", "thousandths: x0 y0 x1 y1"]];

function fileInput(name, words) {
  const input = make("input");
  input.type = "file";
  input.dataset.id = name;
  input.setAttribute("aria-label", words);
  return input;
}

function textInput(words) {
  const input = make("input");
  Object.assign(input, { placeholder: words, maxLength: 200 });
  input.setAttribute("aria-label", words);
  return input;
}

// What a file may not say of itself: how its numbers are read, and what a grounding belongs to.
function moreAboutFile() {
  const more = make("details", "more");
  const fields = {
    space: listOf("How boxes are read", SPACES),
    base: listOf("First frame", [["", "as the format says"], ["0", "0"], ["1", "1"]]),
    rows: fileInput("inrows", "Question rows"),
    dataset: textInput("of a grounding"),
    procedure: textInput("of a grounding"),
    rescale: Object.assign(make("input"), { type: "checkbox" }),
  };
  const grid = make("div", "filtergrid");
  for (const [name, words] of [["space", "How boxes are read"], ["base", "First frame"], ["rows", "Question rows"], ["dataset", "Data set"],
    ["procedure", "Procedure"], ["rescale", "Scale boxes"]]) {
    const label = make("label", "lead", words);
    fields[name].id = "rr-more-" + name;
    label.htmlFor = fields[name].id;
    grid.append(label, fields[name]);
  }
  fields.rescale.title = "Boxes made on another picture size are scaled to the video's";
  more.append(make("summary", "", "More about the file"), grid);
  return { more, fields };
}

function importForm() {
  const form = formOf("Import", "Good lines go in, bad ones are listed by their number. Predictions need a method's name; without it the boxes are truths.");
  const format = listOf("Format to import", [["grounding", "RefineRank grounding"], ...props.formats.map((one) => [one.name, one.title])]);
  format.dataset.id = "informat";
  const file = fileInput("infile", "File to import");
  const method = textInput("Method, if predictions");
  const size = textInput("Frame size, 1920x1080");
  const { more, fields } = moreAboutFile();
  const go = make("button", "primary", "Import");
  const told = make("div", "told");
  told.dataset.id = "intold";
  form.append(format, file, method, size, go, more, told);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!file.files.length) {
      told.textContent = "Choose a file first.";
      return;
    }
    if (!mayDecide()) {
      $("dialog").close();
      askWho(showFiles);
      return;
    }
    const stated = size.value.trim() ? size.value.trim().match(/^(\d{1,5})\s*[x\u00d7]\s*(\d{1,5})$/i) : ["", 0, 0];
    if (!stated) {
      told.textContent = "Write the frame size as 1920x1080, or leave it empty.";
      return;
    }
    told.textContent = "Reading";
    try {
      const sent = await upload(file.files[0]);
      const rows = fields.rows.files.length ? (await upload(fields.rows.files[0])).path : "";
      const reply = await askServer("review_in", { who: me.who(), path: sent.path, format: format.value, method: method.value.trim(),
        width: Number(stated[1]), height: Number(stated[2]), rows, space: fields.space.value || null,
        frame_base: fields.base.value === "" ? null : Number(fields.base.value), rescale: fields.rescale.checked,
        dataset: fields.dataset.value.trim(), procedure: fields.procedure.value.trim() });
      tellImport(told, reply);
    } catch {
      told.textContent = "The upload was broken off. Try again.";
    }
  });
  return form;
}

function tellImport(told, reply) {
  if (reply.error) {
    told.textContent = reply.error;
    return;
  }
  const faults = reply.faults.map((one) => make("li", "", "Line " + one.line + ": " + one.text));
  const list = make("ul", "waitlist");
  list.append(...faults);
  const left = reply.left_out ? reply.left_out + " line" + (reply.left_out === 1 ? "" : "s") + " left out." : "";
  told.replaceChildren(make("p", "", reply.words + " " + left), ...reply.notes.map((one) => make("p", "hint", one)), list);
  loadQueue();
}

function fillForm() {
  const form = formOf("Bundled answers", "The answers that come with the bundled clips, with their exact truth. Those that are in the queue stay as they are.");
  const go = make("button", "plain", "Put them into the queue");
  form.append(go);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    $("dialog").close();
    fillQueue();
  });
  return form;
}

async function fillQueue() {
  if (!mayDecide()) {
    askWho(fillQueue);
    return;
  }
  note("Putting the bundled answers into the queue.");
  const reply = await askServer("review_fill", { who: me.who() });
  note(reply.error || reply.words, reply.error ? "error" : "info");
  if (reply.error) return;
  Q.offset = 0;
  if (await loadQueue() && Q.items.length && !C.id) openCase(Q.items[0].case_id);
}

function wireFiles() {
  $("files").addEventListener("click", showFiles);
  $("exportnow").addEventListener("click", showFiles);
}
