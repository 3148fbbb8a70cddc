// Pages work without this: it only brings a page up to date when the server says that it has changed.
"use strict";
(() => {
  const main = () => document.querySelector("main");
  if (!window.EventSource || !main() || !main().dataset.live) return;

  const isUsed = () => {
    const focus = document.activeElement;
    return (focus && /^(INPUT|SELECT|TEXTAREA)$/.test(focus.tagName)) || String(window.getSelection()) !== "";
  };

  let pending = false;
  let asked = false;
  const refresh = async () => {
    if (asked || isUsed()) { pending = true; return; }
    asked = true;
    pending = false;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
      if (answer.status === 401) { location.reload(); return; } // the session is over: sign in
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      if (!fresh) return;
      const open = [...main().querySelectorAll("details")].map((one) => one.open);
      main().replaceWith(document.adoptNode(fresh));
      [...main().querySelectorAll("details")].forEach((one, index) => { if (index < open.length) one.open = open[index]; });
    } catch (error) {
      pending = true;
    } finally {
      asked = false;
    }
  };

  const events = new EventSource(main().dataset.events);
  events.addEventListener("shown", (event) => {
    if (event.data !== main().dataset.number) refresh();
  });
  document.addEventListener("focusout", () => setTimeout(() => { if (pending) refresh(); }, 0));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isUsed()) return;
    const search = document.querySelector("input[type=search]");
    if (search) { event.preventDefault(); search.focus(); }
  });
})();
