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

function importForm() {
  const form = formOf("Import", "Good lines go in, bad ones are listed by their number. Predictions need a method's name; without it the boxes are truths.");
  const format = listOf("Format to import", [["grounding", "RefineRank grounding"], ...props.formats.filter((one) => one.reads).map((one) => [one.name, one.title])]);
  format.dataset.id = "informat";
  const file = make("input");
  file.type = "file";
  file.dataset.id = "infile";
  file.setAttribute("aria-label", "File to import");
  const text = (words, width) => {
    const input = make("input");
    Object.assign(input, { placeholder: words, maxLength: 200 });
    input.setAttribute("aria-label", words);
    input.style.width = width;
    return input;
  };
  const method = text("method, if predictions", "170px");
  const size = text("frame size, 1920x1080", "170px");
  const go = make("button", "primary", "Import");
  const told = make("div", "told");
  told.dataset.id = "intold";
  form.append(format, " ", file, " ", method, " ", size, " ", go, told);
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
      const reply = await askServer("review_in", { who: me.who(), path: sent.path, format: format.value, method: method.value.trim(),
        width: Number(stated[1]), height: Number(stated[2]) });
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
