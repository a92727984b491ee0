// Video by video, the lowest first.

const V = { all: false, marked: "" };
const FEW = 12;

function videosChanged() {
  const facts = R.facts;
  const wanted = $("videoset").value;
  const mine = facts.videos.filter((one) => !wanted || one.dataset === wanted).sort((a, b) => a.rank - b.rank);
  const shown = V.all ? mine : mine.slice(0, FEW);
  const marked = mine.find((one) => one.video === V.marked);
  if (marked && !shown.includes(marked)) shown.push(marked);
  $("videotitle").textContent = mine.length + " videos, the lowest first";
  $("allvideos").hidden = mine.length <= FEW;
  $("allvideos").textContent = V.all ? "Show the lowest " + FEW : "Show all " + mine.length;
  $("videos").replaceChildren(videosTable(shown));
}

function videosTable(rows) {
  const counted = rows.some((one) => one.times !== null);
  const node = make("table", "figures");
  const head = make("tr");
  const heads = ["Video", "Data set", ...(counted ? ["Rows", "Times"] : []), ...R.facts.video_heads, "Cases to look at"];
  head.append(...heads.map((words, k) => {
    const cell = make("th", k < 2 ? "left" : "", words);
    cell.scope = "col";
    return cell;
  }));
  const top = make("thead");
  top.append(head);
  const body = make("tbody");
  for (const one of rows) body.append(videoRow(one, counted));
  node.append(top, body);
  return node;
}

function videoRow(one, counted) {
  const line = make("tr", one.video === V.marked ? "strong" : "");
  const name = make("th", "", one.video);
  name.scope = "row";
  line.append(name, make("td", "left", one.dataset));
  if (counted) line.append(make("td", "", String(one.rows)), make("td", "", String(one.times)));
  line.append(...one.values.map((value) => barCell(value)));
  const links = make("td", "links");
  const cases = R.cases[one.stem] || 0;
  if (cases) links.append(linkTo(cases + (cases === 1 ? " case" : " cases") + " in Failures", () => openFailures(one.stem)));
  const worst = R.facts.worst.findIndex((other) => other.video === one.video);
  if (worst >= 0) links.append(linkTo("lowest answer", () => openWorst(R.facts.worst[worst])));
  if (!links.childNodes.length) links.textContent = "\u2013";
  line.append(links);
  return line;
}

function linkTo(words, act) {
  const button = make("button", "inline", words);
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

function barCell(value) {
  const cell = make("td", "barcell", value === null ? "\u2013" : value.toFixed(3));
  const bar = make("i");
  bar.style.width = 100 * Math.max(0, value || 0) + "%";
  const track = make("span", "track");
  track.append(bar);
  cell.append(track);
  return cell;
}

// The Failures tab, with this video's cases alone.
function openFailures(video) {
  window.refinerankVideo = video;
  const tab = document.querySelector('#tabs button[role="tab"][data-tab-id="failures"]');
  if (tab) tab.click();
  window.dispatchEvent(new CustomEvent("refinerank-video"));
}

// A click on a dot of the figure shows its row.
function videoClicked(event) {
  const data = event.points && event.points[0] && event.points[0].customdata;
  if (!Array.isArray(data)) return;
  V.marked = data[1];
  $("videoset").value = "";
  videosChanged();
  const row = $("videos").querySelector("tr.strong");
  if (row) row.scrollIntoView({ block: "center" });
}
