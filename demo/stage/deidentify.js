// Aids against showing whom a clip is of: they may miss, and the page says so.

let outsideAsked = "";

function askOutside(facts) {
  if (facts.stamp === outsideAsked) return; // any news of the server comes by here
  outsideAsked = facts.stamp;
  root.dataset.uploading = "no";
  note("");
  let decided = false;
  const decide = (words, choice, kind) => {
    const button = make("button", kind, words);
    button.type = "button";
    button.addEventListener("click", () => {
      decided = true;
      $("dialog").close();
      trigger("upload", { path: facts.path, mask: facts.mask, ...choice });
    });
    return button;
  };
  const row = make("p", "choices");
  row.append(decide("Do not keep it", { drop: true }, "primary"), decide("Keep it in this session", { confirmed: true }, "plain"));
  openDialog("This clip may show more than the operation", [
    make("p", "", facts.words),
    make("p", "", "Nothing of it is kept yet."),
    row,
  ]);
  $("dialog").addEventListener("close", () => {
    if (!decided) trigger("upload", { path: facts.path, drop: true });
  }, { once: true });
}

let dropTold = "";

function uploadDropped(facts) {
  if (facts.stamp === dropTold) return;
  dropTold = facts.stamp;
  root.dataset.uploading = "no";
  note("The clip was not kept.");
  say("The clip was not kept.");
}
