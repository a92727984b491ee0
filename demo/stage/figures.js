// The figures below the stage: Gradio's own components, which come and go in a time of their own.

let focusTimer = 0;
let focused = "";
let figuresHome = null;
let figuresSeen = false;

const plotOverTime = () => document.querySelector("#plot-time .js-plotly-plot");

// The plot library is large: it comes when the figures come into sight.
const figuresSight = new IntersectionObserver((seen) => {
  figuresSeen = seen[seen.length - 1].isIntersecting;
  focusLater();
}, { threshold: 0.25 });

// Each part of the page loads by itself: the figures may be there after the stage, or come anew.
function followFigures() {
  const home = document.getElementById("figures");
  if (home !== figuresHome) {
    figuresSight.disconnect();
    figuresHome = home;
    figuresSeen = false;
    if (home) figuresSight.observe(home);
  }
  wireTimeline();
}

// A click in the figure over time goes to that frame.
function wireTimeline() {
  wireClicks(plotOverTime(), (event) => {
    const point = event.points && event.points[0];
    if (point && S.clip && Number.isFinite(point.x)) go(S.clip.nearest(point.x));
  });
}

// The figures follow the time that is looked at, after a moment of rest.
function focusLater() {
  clearTimeout(focusTimer);
  focusTimer = setTimeout(() => {
    if (!figuresSeen || !S.answer || S.k === null) return;
    const wish = [S.answer.token, S.answer.version, S.k].join(" ");
    if (wish === focused && plotOverTime()) return;
    focused = wish;
    trigger("focus_time", { answer: S.answer.token, k: S.k });
  }, 500);
}

function wireFigures() {
  new MutationObserver(followFigures).observe(document.body, { childList: true, subtree: true });
  followFigures();
}
