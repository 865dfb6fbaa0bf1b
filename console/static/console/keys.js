"use strict";
// The keyboard of the console. No key decides anything: what a person rules is chosen, written and sent by hand.
{
  const body = document.body;
  const by = (id) => document.getElementById(id);
  const help = by("keys-dialog");
  const choice = by("keys-on");
  let on = true;
  try {
    on = localStorage.getItem("keys") !== "off";
  } catch {
    // a browser that keeps nothing has the keys on
  }
  if (choice) {
    choice.checked = on;
    choice.addEventListener("change", () => {
      on = choice.checked;
      try {
        localStorage.setItem("keys", on ? "on" : "off");
      } catch {
        // as above
      }
    });
  }
  function show(dialog, opener) {
    if (!dialog || dialog.open) return;
    dialog.showModal();
    dialog.addEventListener("close", () => opener && opener.isConnected && opener.focus(), { once: true });
  }

  // The list: one row has the cursor, told to eye and ear by the focus on its link.
  let cursor = "";
  const rows = () => [...document.querySelectorAll("tr[data-row]")];
  const here = () => rows().find((row) => row.dataset.row === cursor);
  function mark() {
    for (const row of rows()) row.classList.toggle("cursor", row.dataset.row === cursor);
  }
  function move(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(here());
    const row = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))];
    cursor = row.dataset.row;
    mark();
    const link = row.querySelector("th a, td a");
    if (link) link.focus();
    row.scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("focusin", (event) => {
    const row = event.target.closest("tr[data-row]");
    if (!row) return;
    cursor = row.dataset.row;
    mark();
  });
  let held = false;
  document.addEventListener("htmx:beforeSwap", (event) => {
    held = event.detail.target.contains(document.activeElement) && document.activeElement.closest("tr[data-row]");
  });
  document.addEventListener("htmx:afterSwap", () => {
    mark();
    const link = held && here() && here().querySelector("th a, td a");
    if (link) link.focus({ preventScroll: true });
    held = false;
  });

  // A row's forms: the page holds them once, the row says which case at which version.
  function send(act) {
    const row = here();
    const form = by("row-act");
    if (!row || !row.dataset.case || !form) return false;
    form.action = form.dataset.cases + row.dataset.case + "/" + act + "/";
    const version = document.createElement("input");
    version.type = "hidden";
    version.name = "version";
    version.value = row.dataset.version;
    form.append(version);
    form.requestSubmit();
    return true;
  }
  function ask(act) {
    const row = here();
    const dialog = by(act + "-dialog");
    if (!row || !row.dataset.case || !dialog) return false;
    const form = dialog.querySelector("form");
    form.action = by("row-act").dataset.cases + row.dataset.case + "/" + act + "/";
    form.elements.version.value = row.dataset.version;
    dialog.querySelector("[data-name]").textContent = row.querySelector("th a").textContent;
    show(dialog, row.querySelector("th a"));
    return true;
  }
  function press(selector) {
    const button = document.querySelector(selector);
    if (button && !button.disabled) button.click();
  }
  function focus(...selectors) {
    const node = selectors.map((selector) => document.querySelector(selector)).find(Boolean);
    if (!node) return;
    for (let fold = node.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    node.focus();
    node.scrollIntoView({ block: "center" });
  }
  const acts = {
    j: () => move(1),
    k: () => move(-1),
    o: () => here() && here().querySelector("th a, td a").click(),
    t: () => send("take") || press('form[action$="/take/"] button'),
    i: () => send("inquire") || press('form[action$="/inquire/"] button'),
    m: () => ask("comment") || focus("#comment-text"),
    p: () => ask("park") || focus("#park-minutes"),
    x: () => here() && press("tr.cursor input[name=job]"),
    "/": () => focus(".filter-grid :is(input, select)", ".filters :is(input, select):not([type=hidden])", "#global-q"),
    r: () => {
      const ruling = by("ruling");
      const evidence = by("did");
      if (!ruling || !evidence) return;
      for (const fold of ruling.querySelectorAll("details.keyed")) fold.open = true;
      ruling.scrollIntoView({ block: "nearest" });
      evidence.focus({ preventScroll: true });
    },
    "?": () => show(help, document.activeElement),
  };
  const ways = body.dataset;
  const goes = { i: ways.goInbox, j: ways.goJobs, q: ways.goQueues, w: ways.goWorkers };
  let going = 0;

  document.addEventListener("keydown", (event) => {
    if (!on || event.defaultPrevented || event.isComposing) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // Whoever types is typing: in a field, in a list, in a dialog.
    if (event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable], dialog[open]")) return;
    if (event.target.matches("input[type=radio]")) return;
    const key = event.key;
    if (going && Date.now() - going < 1500) {
      going = 0;
      if (goes[key]) {
        event.preventDefault();
        location.assign(goes[key]);
      }
      return;
    }
    if (key === "g") {
      going = Date.now();
      return;
    }
    if (!acts[key]) return;
    event.preventDefault();
    acts[key]();
  });

  // Buttons that need a script: they are told from the others by what they carry.
  async function copy(button, text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    by("told").textContent = body.dataset.copied;
    button.classList.add("done");
    setTimeout(() => {
      button.classList.remove("done");
      by("told").textContent = "";
    }, 2000);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const data = button.dataset;
    if ("copy" in data) copy(button, data.copy);
    else if ("copyLink" in data) copy(button, location.href);
    else if ("print" in data) print();
    else if ("close" in data) button.closest("dialog").close();
    else if ("keys" in data) show(help, button);
  });
}
