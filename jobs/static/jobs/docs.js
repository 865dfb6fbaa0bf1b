// The description of the API as a page on which each operation can be tried. Text stays text: nothing that a
// description or an answer holds is ever read as markup.
"use strict";

const body = document.body;
const token = document.getElementById("token");

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function resolved(part, schemas) {
  if (Array.isArray(part)) return part.map((inner) => resolved(inner, schemas));
  if (part === null || typeof part !== "object") return part;
  if (part.$ref) return resolved(schemas[part.$ref.split("/").pop()], schemas);
  return Object.fromEntries(Object.entries(part).map(([key, inner]) => [key, resolved(inner, schemas)]));
}

function words(schema) {
  if (schema.enum) return schema.enum.map(String).join(" | ");
  const kind = [schema.type || "anything"].flat().join(" or ");
  if (schema.items) return `list of ${words(schema.items)}`;
  const bounds = [["minimum", "from"], ["maximum", "to"], ["minLength", "at least"], ["maxLength", "at most"]]
    .filter(([key]) => key in schema).map(([key, word]) => `${word} ${schema[key]}`);
  return [kind, schema.format, ...bounds].filter(Boolean).join(", ");
}

function outline(schema, indent = "") {
  const members = schema.properties || (schema.items && schema.items.properties);
  if (!members) return "";
  const needed = new Set(schema.required || (schema.items && schema.items.required) || []);
  return Object.entries(members).map(([name, inner]) =>
    `${indent}${name}${needed.has(name) ? "" : "?"}: ${words(inner)}\n${outline(inner, indent + "  ")}`).join("");
}

function example(schema) {
  const members = Object.entries(schema.properties || {}).filter(([name]) => (schema.required || []).includes(name));
  const value = (inner) => inner.enum ? inner.enum[0] : inner.type === "object" ? {} : inner.type === "array" ? []
    : inner.type === "boolean" ? false : inner.type === "integer" || inner.type === "number" ? 1 : "";
  return JSON.stringify(Object.fromEntries(members.map(([name, inner]) => [name, value(inner)])), null, 2);
}

async function send(operation, form, out) {
  let path = operation.path;
  const query = new URLSearchParams();
  const headers = {};
  if (token.value) headers.Authorization = `Bearer ${token.value}`;
  else headers["X-CSRFToken"] = body.dataset.csrf;
  for (const parameter of operation.parameters) {
    const value = form.elements.namedItem(`${parameter.in}:${parameter.name}`).value;
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(value));
    else if (value && parameter.in === "query") value.split(/\n/).forEach((one) => query.append(parameter.name, one));
    else if (value) headers[parameter.name] = value;
  }
  const request = { method: operation.method, headers, credentials: token.value ? "omit" : "same-origin" };
  const text = form.elements.namedItem("body");
  if (text) {
    headers["Content-Type"] = "application/json";
    request.body = text.value;
  }
  out.textContent = "…";
  try {
    const answer = await fetch(query.size ? `${path}?${query}` : path, request);
    const told = await answer.text();
    const tag = answer.headers.get("ETag");
    let shown = told;
    try { shown = JSON.stringify(JSON.parse(told), null, 2); } catch { /* no JSON: as it is */ }
    out.textContent = `${answer.status}${tag ? `  ETag ${tag}` : ""}\n${shown}`;
  } catch (error) {
    out.textContent = String(error);
  }
}

function shown(operation) {
  const form = make("form", {});
  for (const parameter of operation.parameters) {
    const name = `${parameter.in}:${parameter.name}`;
    form.append(make("label", {}, make("span", {}, make("code", {}, parameter.name), ` ${parameter.in}`),
      make("input", { name, placeholder: words(parameter.schema) })));
  }
  if (operation.body) {
    form.append(make("pre", { tabindex: "0" }, outline(operation.body) || "an empty object"));
    const text = make("textarea", { name: "body", spellcheck: "false" });
    text.value = example(operation.body);
    form.append(make("label", { class: "wide" }, make("span", {}, "Body"), text));
  }
  const out = make("pre", { tabindex: "0", role: "status" });
  form.append(make("button", { type: "submit" }, "Send"), out);
  form.addEventListener("submit", (event) => { event.preventDefault(); send(operation, form, out); });
  const answers = Object.entries(operation.answers).filter(([status]) => status.startsWith("2"))
    .map(([status, schema]) => make("pre", { tabindex: "0" }, `${status}\n${outline(schema)}`));
  return make("details", {},
    make("summary", {}, make("b", {}, operation.method), make("code", {}, operation.path),
      make("span", { class: "quiet" }, `  ${operation.scope}`)),
    make("p", {}, operation.description), form, ...answers);
}

async function start() {
  const told = await (await fetch(body.dataset.description)).json();
  const main = document.getElementById("operations");
  const groups = new Map();
  for (const [path, methods] of Object.entries(resolved(told.paths, told.components.schemas))) {
    for (const [method, one] of Object.entries(methods)) {
      const content = (part) => part && part.content && part.content["application/json"]
        ? part.content["application/json"].schema : null;
      const group = groups.get(one.tags[0]) || [];
      group.push({
        method: method.toUpperCase(), path, description: one.description || "", parameters: one.parameters || [],
        scope: one.security[0].token.join(" "), body: content(one.requestBody),
        answers: Object.fromEntries(Object.entries(one.responses).map(([k, part]) => [k, content(part) || {}])),
      });
      groups.set(one.tags[0], group);
    }
  }
  main.replaceChildren();
  for (const [name, operations] of groups) main.append(make("h2", {}, name), ...operations.map(shown));
}

start();
