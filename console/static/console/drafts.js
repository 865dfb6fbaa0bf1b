"use strict";
// A log-in that ends while a person writes takes no words: they are back when the page is, for the same person in
// the same tab. What was sent, or left behind for another page, is forgotten; and nothing that decides is kept.
{
  const KEY = "draft";
  const user = document.body.dataset.user;
  const fields = "textarea, input[type=text]:not([name=typed], [name=code])";
  const mine = (field) => field.form && field.form.method === "post" && field.matches(fields);
  const name = (field) => field.form.getAttribute("action") + " " + field.name;
  const read = () => JSON.parse(sessionStorage.getItem(KEY));

  if (document.body.classList.contains("login")) {
    const kept = read();
    if (kept) sessionStorage.setItem(KEY, JSON.stringify({ ...kept, cut: true }));
  } else {
    const kept = read();
    sessionStorage.removeItem(KEY);
    if (kept && kept.cut && kept.user === user && kept.path === location.pathname) {
      for (const field of document.querySelectorAll(fields)) {
        if (mine(field) && !field.value && kept.words[name(field)]) field.value = kept.words[name(field)];
      }
    }
    if (user) document.addEventListener("input", (event) => mine(event.target) && keep(event.target.form));
  }

  function keep(form) {
    const words = {};
    for (const field of form.elements) if (mine(field) && field.value) words[name(field)] = field.value;
    try {
      sessionStorage.setItem(KEY, JSON.stringify({ user, path: location.pathname, words }));
    } catch {
      sessionStorage.removeItem(KEY); // more than a browser keeps
    }
  }
}
