// What people decided about the answer's times in the Review tab.

const humanNow = () => {
  const found = S.k === null ? null : S.human.get(S.index);
  return found && found.box ? found : null;
};

async function wantHuman() {
  if (!props.reviewing || !S.answer) return;
  const token = S.answer.token;
  const reply = await askServer("reviewed", { answer: token });
  if (!S.answer || S.answer.token !== token || reply.error) return;
  S.human = new Map(reply.times.map((one) => [one.frame, one]));
  layersChanged();
  legendChanged();
  drawLanes();
  drawSoon();
}

// Whoever comes back from another tab may have decided something there.
function wireHuman() {
  let away = false;
  new IntersectionObserver((seen) => {
    const here = seen[seen.length - 1].boundingClientRect.width > 0;
    if (here && away) wantHuman();
    away = !here;
  }).observe(root);
}
