"use strict";
// What is on the screen. Boxes and points are float pixels of the source frame.

const $ = (name) => element.querySelector('[data-id="' + name + '"]');
const root = element.querySelector(".rr");
const plain = (value) => (value == null ? null : JSON.parse(JSON.stringify(value)));

const ROLES = {
  pool: { letter: "p", name: "Pool", color: "#BBBBBB", width: 1, dash: [1.5, 3], tag: "", alpha: 0.6 },
  refined: { letter: "f", name: "Refined", color: "#56B4E9", width: 1, dash: [1.5, 3], tag: "", alpha: 0.75 },
  rank: { letter: "r", name: "RefineRank", color: "#56B4E9", width: 3, dash: [], tag: "R1", alpha: 1 },
  medvlm: { letter: "v", name: "MedVLM", color: "#F0E442", width: 2.5, dash: [14, 6], tag: "V", alpha: 1 },
  detector: { letter: "d", name: "MedVLM+GD", color: "#009E73", width: 2.5, dash: [10, 4, 2, 4], tag: "D", alpha: 1 },
  human: { letter: "h", name: "Human", color: "#FFFFFF", width: 3, dash: [], tag: "H", alpha: 1, handles: true },
  truth: { letter: "g", name: "Truth", color: "#000000", width: 2, dash: [], tag: "G", alpha: 1 },
};
const LAYER_KEYS = ["pool", "refined", "rank", "medvlm", "detector", "human", "truth"];

const S = {
  clip: null, index: 0, image: null, answer: null, k: null, pools: new Map(), human: new Map(),
  layers: new Set(["pool", "rank", "medvlm", "detector", "human", "truth"]),
  topk: 5, floor: -Infinity, dropped: false, hover: null, selected: null,
  maps: new Map(), overlay: "", opacity: 0.45, palette: "cividis", shared: false, target: "answer",
  busy: false, pointer: null,
};

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function say(words) {
  $("live").textContent = words;
}

function note(words, kind) {
  const box = $("notice");
  box.hidden = !words;
  box.dataset.kind = kind || "info";
  box.replaceChildren();
  if (!words) return;
  const close = make("button", "", "\u00d7");
  close.type = "button";
  close.setAttribute("aria-label", "Close this note");
  close.addEventListener("click", () => note(""));
  box.append(make("span", "", words), close);
}

async function askServer(name, message) {
  try {
    const reply = await server[name](message);
    return reply && typeof reply === "object" ? reply : { error: "The server did not answer. Try again." };
  } catch {
    return { error: "The server cannot be reached. Check that it still runs, then reload the page." };
  }
}

const timeNow = () => (S.k === null || !S.answer ? null : S.answer.times[S.k]);
const poolNow = () => (S.k === null ? null : S.pools.get(S.k) || null);
const secondsOf = (index) => (S.clip ? S.clip.seconds(index) : 0);
const figure = (value, digits) => (value == null ? "\u2013" : value.toFixed(digits));
const short = (value) => (value === 0 || Math.abs(value) >= 0.01 ? value.toFixed(2) : String(Number(value.toPrecision(2))));
const memberKey = (id, refined) => id + (refined ? ":r" : ":o");

// One member of the joint pool: a candidate's original or refined box with its own score.
function membersOf(pool) {
  if (pool.members) return pool.members;
  const members = [];
  const kept = new Set();
  const add = (id, refined, rank) => {
    const row = pool.rows[id];
    const box = refined ? row.refined : row.box;
    if (!box) return;
    members.push({ key: memberKey(id, refined), id, refined: Boolean(refined), rank, row, box,
      score: refined ? row.s_hat : row.s });
  };
  pool.order.forEach(([id, refined], place) => {
    kept.add(memberKey(id, refined));
    add(id, refined, place + 1);
  });
  const rest = [];
  pool.rows.forEach((row, id) => {
    for (const refined of [0, 1]) {
      if ((refined ? row.refined : row.box) && !kept.has(memberKey(id, refined))) rest.push([id, refined]);
    }
  });
  const score = ([id, refined]) => (refined ? pool.rows[id].s_hat : pool.rows[id].s);
  rest.sort((a, b) => score(b) - score(a)).forEach(([id, refined]) => add(id, refined, null));
  pool.members = members;
  pool.byKey = new Map(members.map((one) => [one.key, one]));
  const scores = members.map((one) => one.score);
  pool.range = [Math.min(...scores), Math.max(...scores)];
  return members;
}

function memberAt(key) {
  const pool = poolNow();
  if (!pool || !key) return null;
  membersOf(pool);
  return pool.byKey.get(key) || null;
}
