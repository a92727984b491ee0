// A clip of the visitor's own, and the page while there is no clip at all.

function emptyStage() {
  const box = $("empty");
  box.hidden = false;
  box.replaceChildren(...(props.limits.uploads ? invitation() : [
    make("h2", "", "No clip to show"),
    make("p", "", "No clip is bundled with this page and it takes no uploads. Whoever runs it can start it with --samples or --uploads."),
  ]));
  transportChanged();
  inspectorChanged();
  stripChanged();
  mapsChanged();
}

function invitation() {
  const open = make("button", "primary", "Upload a clip");
  open.type = "button";
  open.addEventListener("click", () => $("file").click());
  const minutes = Math.round(props.limits.duration_s / 60);
  const longest = minutes >= 2 ? minutes + " minutes" : Math.round(props.limits.duration_s) + " seconds";
  return [
    make("h2", "", "Start with a clip"),
    make("p", "", "Drop a surgical video here: MP4, MOV, MKV, AVI or GIF, up to " + props.limits.upload_mb + " MB and "
      + longest + ". It stays in this session, without its metadata, and is removed when you leave."),
    open,
  ];
}

function noClip() {
  note("Open a clip first: choose one from the list" + (props.limits.uploads ? " or upload one." : "."), "error");
}

async function sendFile(file) {
  if (!file) return;
  if (!props.limits.uploads) {
    note("This page takes no uploads. Run the app yourself to ask about your own videos.", "error");
    return;
  }
  const megabytes = file.size / 1048576;
  if (megabytes > props.limits.upload_mb) {
    const words = "The clip has " + megabytes.toFixed(0) + " MB; at most " + props.limits.upload_mb + " MB are taken. Cut it shorter or export it smaller.";
    note(words, "error");
    say(words);
    return;
  }
  root.dataset.uploading = "yes";
  note("Uploading " + file.name + " (" + megabytes.toFixed(1) + " MB)", "info");
  try {
    const sent = await upload(file);
    trigger("upload", { path: sent.path, mask: $("maskborder").checked });
  } catch {
    root.dataset.uploading = "no";
    note("The upload was broken off. Try again.", "error");
  }
}
