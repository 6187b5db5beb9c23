"use strict";
// What all charts share: the data, what is chosen, numbers as text, elements.

const data = JSON.parse(document.getElementById("data").textContent);

// The reader has chosen these: the axis of all curves, the scale of their values, over which share
// of a curve its values are averaged, and the runs that are shown.
const chosen = { axis: data.axis || "steps", scale: "auto", smoothing: 0, runs: new Set() };

const colors = 8;
const dashes = 4;
// A readout with more lines helps nobody.
const mostNamed = 8;

const fourDigits = d3.format(".4g");
function numberText(value) {
  if (value === null || value === undefined) return "none";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(3).replace(/\.?0+e/, "e");
  return Number.isInteger(value) ? d3.format(",")(value) : String(Number(fourDigits(value)));
}

// On an axis, where room is scarce.
function tickText(value) {
  const size = Math.abs(value);
  if (size >= 1e4) return d3.format("s")(value);
  if (size > 0 && size < 1e-3) return Number(value.toPrecision(6)).toExponential();
  return String(Number(value.toPrecision(6)));
}

// An element of HTML. Texts become text nodes, never markup.
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== undefined) made.setAttribute(key, value);
  }
  for (const child of children) made.append(child);
  return made;
}

function axisOf() {
  return data.axes.find(axis => axis.key === chosen.axis);
}

function axisLabel() {
  return axisOf().label;
}

// Help is written with `names` in it.
function marked(text) {
  return text.split("`").map((part, i) => i % 2 === 1 ? element("code", {}, part) : part);
}

function titleOf(spec) {
  return spec.group ? spec.title + ", " + spec.group : spec.title;
}

// As much of a text as there is room for: names differ at either end.
function shortened(text, room) {
  if (widthOf(text) <= room) return text;
  const letters = Array.from(text);
  let kept = letters.length - 1;
  const cut = () => letters.slice(0, Math.ceil(kept / 2)).join("") + "\u2026" +
      letters.slice(letters.length - Math.floor(kept / 2)).join("");
  while (kept > 6 && widthOf(cut()) > room) --kept;
  return cut();
}

// A table, as far as anybody reads one; `rows` are lists of texts.
function tableOf(caption, head, rows) {
  const most = 1000;
  const body = element("tbody");
  for (const row of rows.slice(0, most)) {
    body.append(element("tr", {}, ...row.map((text, i) =>
        i === 0 ? element("th", { scope: "row" }, text) : element("td", {}, text))));
  }
  const more = rows.length > most ? " (the first " + most + " of " + rows.length + " rows)" : "";
  const table = element("table", {}, element("caption", {}, caption + more),
      element("thead", {}, element("tr", {},
          ...head.map(text => element("th", { scope: "col" }, text)))), body);
  return element("div",
      { class: "scroll", role: "group", tabindex: 0, "aria-label": caption + ", table" }, table);
}
