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
  const told = document.getElementById("told");
  const LATE = 300;
  // By the id of a region: the address it shows instead of its own, since when its values are, and what waits.
  const addresses = new Map();
  const values = new Map();
  const asked = new Map();
  let aborting = false;
  let focused = false;
  const name = (area) => (area.querySelector("h2, h3, caption") || document.querySelector("h1")).textContent.trim();
  const names = (areas) => areas.map(name).join(", ");

  // A person asks for a region: at once, although it is paused, and in place of what is under way.
  function ask(area, address) {
    loaded(area);
    if (address) {
      addresses.set(area.id, address);
      tags.delete(area.id);
    }
    asked.set(area.id, setTimeout(load, LATE, area));
    area.setAttribute("aria-busy", "true");
    put(told, "");
    // One more refresh may have queued up behind a slow one: it begins with the abort, and is what was asked for.
    aborting = true;
    window.htmx.trigger(area, "htmx:abort");
    aborting = false;
    window.htmx.trigger(area, "again");
  }
  function load(area) {
    const bar = document.createElement("div");
    bar.className = "skeleton";
    area.prepend(bar);
    area.classList.add("loading");
    put(told, told.dataset.loading + " " + name(area));
  }
  function loaded(area) {
    clearTimeout(asked.get(area.id));
    asked.delete(area.id);
    area.removeAttribute("aria-busy");
    area.classList.remove("loading");
    for (const bar of area.querySelectorAll(":scope > .skeleton")) bar.remove();
  }
  const note = (area) => area.querySelector(":scope > .unfresh-note");
  function tell() {
    const areas = [...document.querySelectorAll(".unfresh")];
    if (stale) stale.hidden = areas.length === 0;
    put(told, areas.length ? told.dataset.failed + " " + names(areas) : told.dataset.fresh);
  }
  // What could not be read anew says so where it stands, and keeps what it had.
  function fail(area) {
    if (!note(area)) {
      area.prepend(document.getElementById("unfresh").content.cloneNode(true));
      const at = new Date(values.get(area.id) || Date.parse(body.dataset.now)).toISOString().slice(11, 16) + " UTC";
      const text = note(area).querySelector("span");
      text.textContent = text.textContent.replace("TIME", at);
    }
    area.classList.add("unfresh");
    tell();
  }
  function refresh(area) {
    values.set(area.id, now());
    const address = addresses.get(area.id);
    if (address && address !== location.pathname + location.search) history.replaceState(null, "", address);
    if (!area.classList.contains("unfresh")) return;
    const old = note(area);
    if (old) old.remove();
    area.classList.remove("unfresh");
    if (focused) {
      area.tabIndex = -1;
      area.focus({ preventScroll: true });
    }
    tell();
  }
  document.addEventListener("click", (event) => {
    const again = event.target.closest("[data-again]");
    if (again) ask(again.closest("[data-live]"));
    const link = event.target.closest("a[data-load]");
    const area = link && window.htmx && document.getElementById(link.dataset.load);
    if (!area || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    ask(area, link.pathname + link.search);
  });

  // A person who reads closely is not to be interrupted: marked text, an open list, a field in use.
  function busy(element) {
    const marked = getSelection();
    if (element.querySelector("input[name=job]:checked")) return true;
    if (marked && !marked.isCollapsed && element.contains(marked.anchorNode)) return true;
    const focus = document.activeElement;
    return element.contains(focus) && focus.matches("input:not([name=job]), select, textarea");
  }
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (region(event) && !asked.has(event.detail.elt.id) && (paused || document.hidden || busy(event.detail.elt))) event.preventDefault();
  });
  document.addEventListener("htmx:configRequest", (event) => {
    if (!region(event)) return;
    const { id } = event.detail.elt;
    if (addresses.has(id)) event.detail.path = addresses.get(id);
    if (tags.has(id)) event.detail.headers["If-None-Match"] = tags.get(id);
    // A person's own act keeps the session, which the page's refreshes do not (config/idle.py).
    if (asked.has(id)) event.detail.headers["HX-Boosted"] = "true";
  });
  let unfolded = new Map();
  let held = "";
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!event.detail.target.matches("[data-live]")) return;
    const old = note(event.detail.target);
    focused = Boolean(old) && old.contains(document.activeElement);
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
    if (!region(event) || aborting) return;
    const area = event.detail.elt;
    const answer = event.detail.xhr;
    loaded(area);
    if (answer.status !== 304 && (answer.status < 200 || answer.status >= 300)) return;
    refresh(area);
    const tag = answer.getResponseHeader("ETag");
    if (tag) tags.set(area.id, tag);
    const at = document.getElementById("live-at");
    if (at) at.dateTime = new Date(now()).toISOString();
  });
  for (const wrong of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(wrong, (event) => region(event) && fail(event.detail.elt));
  }

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
