// Small parts of a page.

function swatch(role) {
  const line = make("span", "swatch " + role);
  line.setAttribute("aria-hidden", "true");
  return line;
}

function download(name, blob) {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function openDialog(title, parts) {
  $("dialogtitle").textContent = title;
  $("dialogbody").replaceChildren(...parts);
  $("dialog").showModal();
}

// What the browser keeps; where it may not, the page does.
const pageMemory = new Map();

function kept(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return pageMemory.get(key) || null;
  }
}

function keep(key, text) {
  try {
    if (text === null) localStorage.removeItem(key);
    else localStorage.setItem(key, text);
  } catch {
    if (text === null) pageMemory.delete(key);
    else pageMemory.set(key, text);
  }
}

function keptKeys() {
  try {
    return Object.keys(localStorage);
  } catch {
    return [...pageMemory.keys()];
  }
}

// The page's theme, which Gradio marks on its body, now and whenever it changes.
function followTheme(then) {
  const follow = () => {
    const dark = document.body.classList.contains("dark");
    for (const part of element.querySelectorAll(".rr")) part.classList.toggle("dark", dark);
    if (then) then();
  };
  new MutationObserver(follow).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  follow();
}

// A plot drawn anew has a new `on`, and has forgotten who listened.
function wireClicks(plot, clicked) {
  if (!plot || !plot.on || plot.wiredBy === plot.on) return;
  plot.wiredBy = plot.on;
  plot.dataset.wired = "yes";
  plot.on("plotly_click", clicked);
}

function whenPlotClicked(name, clicked) {
  const home = document.querySelector("#" + name);
  const attach = () => wireClicks(home && home.querySelector(".js-plotly-plot"), clicked);
  if (home) new MutationObserver(attach).observe(home, { childList: true, subtree: true });
  attach();
}
