// Which RefineNet answers: the profile's own, or one that reviews have taught.

const V = { rows: [], chosen: "" };

// The models that the next question is put to.
const profileNow = () => V.rows.find((one) => one.name === V.chosen) || props.profile;

async function readVariants() {
  const reply = await askServer("variants", {});
  V.rows = reply.rows || [];
  if (!V.rows.some((one) => one.name === V.chosen)) V.chosen = "";
  const list = $("variant");
  list.replaceChildren();
  for (const one of [{ name: "", label: props.profile.label }, ...V.rows]) {
    const option = make("option", "", one.name || props.profile.name);
    option.value = one.name;
    option.title = one.label;
    list.append(option);
  }
  list.value = V.chosen;
  list.hidden = !V.rows.length;
}

function wireVariants() {
  $("variant").addEventListener("change", (event) => {
    V.chosen = event.target.value;
    badge();
  });
  // One that a training leaves behind is there without a reload.
  document.addEventListener("visibilitychange", readVariants);
  new IntersectionObserver((seen) => {
    if (seen.some((one) => one.isIntersecting)) readVariants();
  }).observe($("badge"));
}
