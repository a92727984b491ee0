() => {
  // Come back to the tab one was on when the page is loaded again: Gradio reloads it by itself once a
  // lost server is back. And say beside "Review", and in the head of Explore, whether every decision
  // is confirmed.
  const kept = { tab: "refinerank-tab", action: "refinerank-act:" };
  const button = (id) => document.querySelector('#tabs button[role="tab"][data-tab-id="' + id + '"]');
  const quietly = (work) => {
    try {
      return work();
    } catch {
      return null; // a browser that keeps nothing
    }
  };
  document.addEventListener("click", (event) => {
    const tab = event.target.closest && event.target.closest('#tabs button[role="tab"]');
    if (tab) quietly(() => sessionStorage.setItem(kept.tab, tab.dataset.tabId));
  });
  const wanted = quietly(() => sessionStorage.getItem(kept.tab));
  let tries = wanted && wanted !== "explore" ? 100 : 0;
  const turn = () => {
    const tab = button(wanted);
    if (tab && tab.getAttribute("aria-selected") !== "true") tab.click();
    else if (!tab && --tries > 0) setTimeout(turn, 100);
  };
  if (tries) turn();
  setInterval(() => {
    const waiting = quietly(() => Object.keys(localStorage).filter((key) => key.startsWith(kept.action)).length);
    const tab = button("review");
    if (tab) tab.toggleAttribute("data-unsaved", Boolean(waiting));
    const state = document.querySelector('#stage [data-id="savedstate"]');
    const words = waiting ? waiting + " not saved yet" : "All saved";
    if (state && state.textContent !== words) state.textContent = words;
    if (state) state.toggleAttribute("data-unsaved", Boolean(waiting));
  }, 1000);
}
