"use strict";
// The little that a page does by itself: ages count on, regions refresh, and both hold still when a person needs it.
{
  const body = document.body;
  const offset = body.dataset.now ? Date.parse(body.dataset.now) - Date.now() : 0;
  const units = body.dataset.units.split("|");
  const say = (unit, n) => units[unit].replace("%(n)s", n);
  // The database's clock as well as we know it: what the server said, carried on.
  const now = () => Date.now() + offset;

  // The same words as console/wording.py.
  function age(seconds) {
    if (seconds < 60) return say(0, seconds);
    if (seconds < 3600) return say(1, Math.floor(seconds / 60));
    if (seconds < 172800) return say(2, Math.floor(seconds / 3600));
    return say(3, Math.floor(seconds / 86400));
  }
  function span(seconds) {
    const two = (unit, whole, rest) => say(unit, whole) + (rest ? " " + say(unit - 1, rest) : "");
    if (seconds < 60) return say(0, seconds);
    if (seconds < 3600) return two(1, Math.floor(seconds / 60), seconds % 60);
    if (seconds < 86400) return two(2, Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60));
    return two(3, Math.floor(seconds / 86400), Math.floor((seconds % 86400) / 3600));
  }
  function put(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }
  function count() {
    if (document.hidden) return;
    for (const node of document.querySelectorAll("time[data-count]")) {
      const past = Math.max(0, Math.floor((now() - Date.parse(node.dateTime)) / 1000));
      const ahead = Math.max(0, Math.ceil((Date.parse(node.dateTime) - now()) / 1000));
      const counting = node.dataset.count;
      put(node, counting === "age" ? age(past) : span(counting === "span" ? past : ahead));
    }
    const clock = document.getElementById("db-clock");
    if (clock) {
      put(clock, new Date(now()).toISOString().slice(11, 19) + " UTC");
      const local = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
      const beside = document.getElementById("local-clock");
      put(beside, new Date().getTimezoneOffset() === 0 ? "" : beside.dataset.says.replace("TIME", local));
    }
  }
  count();
  setInterval(count, 1000);

  // Regions.
  const pause = document.getElementById("live-pause");
  const state = document.getElementById("live-state");
  const stale = document.getElementById("live-stale");
  let paused = sessionStorage.getItem("paused") === "1";
  function show() {
    pause.setAttribute("aria-pressed", String(paused));
    pause.classList.toggle("on", paused);
  }
  if (pause && window.htmx) {
    pause.hidden = state.hidden = false;
    show();
    pause.addEventListener("click", () => {
      paused = !paused;
      sessionStorage.setItem("paused", paused ? "1" : "0");
      show();
    });
  }
  const region = (event) => event.detail.elt && event.detail.elt.matches("[data-live]");
  const tags = new Map();

  // A person who reads closely is not to be interrupted: marked text, an open list, a field in use.
  function busy(element) {
    const marked = getSelection();
    if (element.querySelector("input[name=job]:checked")) return true;
    if (marked && !marked.isCollapsed && element.contains(marked.anchorNode)) return true;
    const focus = document.activeElement;
    return element.contains(focus) && focus.matches("input:not([name=job]), select, textarea");
  }
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (region(event) && (paused || document.hidden || busy(event.detail.elt))) event.preventDefault();
  });
  document.addEventListener("htmx:configRequest", (event) => {
    if (region(event) && tags.has(event.detail.elt.id)) {
      event.detail.headers["If-None-Match"] = tags.get(event.detail.elt.id);
    }
  });
  let unfolded = new Map();
  let held = "";
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!event.detail.target.matches("[data-live]")) return;
    unfolded = new Map();
    for (const node of event.detail.target.querySelectorAll("details[id]")) unfolded.set(node.id, node.open);
    const chosen = event.detail.target.querySelector("input[type=radio]:checked");
    held = chosen ? chosen.id : "";
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    for (const [id, open] of unfolded) {
      const node = document.getElementById(id);
      if (node) node.open = open;
    }
    unfolded.clear();
    const chosen = held && document.getElementById(held);
    if (chosen && !chosen.disabled) chosen.checked = true;
    count();
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!region(event)) return;
    const answer = event.detail.xhr;
    const good = answer.status === 304 || (answer.status >= 200 && answer.status < 300);
    if (stale) stale.hidden = good;
    if (!good) return;
    const tag = answer.getResponseHeader("ETag");
    if (tag) tags.set(event.detail.elt.id, tag);
    document.getElementById("live-at").dateTime = new Date(now()).toISOString();
  });

  // Selected rows: told how many they are; the list holds still until they are sent or let go.
  const bar = document.getElementById("selbar");
  function selected() {
    const boxes = [...document.querySelectorAll("input[name=job]")];
    const n = boxes.filter((box) => box.checked).length;
    for (const box of boxes) box.closest("tr").classList.toggle("selected", box.checked);
    bar.querySelector("[data-selected]").textContent = n;
    bar.hidden = n === 0;
  }
  if (bar) {
    document.addEventListener("change", (event) => event.target.name === "job" && selected());
    bar.querySelector("[data-unselect]").addEventListener("click", () => {
      for (const box of document.querySelectorAll("input[name=job]:checked")) box.checked = false;
      selected();
    });
  }

  // Whoever has chosen no time zone is offered the browser's own.
  const zone = document.querySelector("select[data-guess-zone]");
  if (zone) {
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if ([...zone.options].some((option) => option.value === own)) zone.value = own;
  }

  // A menu closes when one looks elsewhere.
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}
