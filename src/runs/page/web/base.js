"use strict";
// What all charts share: the data, what is chosen, numbers as text, elements.

const data = JSON.parse(document.getElementById("data").textContent);

// What the reader has chosen: the axis of all curves, and the runs that are shown.
const chosen = { axis: "steps", runs: new Set() };

const colors = 8;
const dashes = 4;
// A legend or a readout with more lines helps nobody.
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
  if (size > 0 && size < 1e-3) return value.toExponential(0);
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

function axisLabel() {
  return data.axes.find(axis => axis.key === chosen.axis).label;
}

// Help is written with `names` in it.
function marked(text) {
  return text.split("`").map((part, i) => i % 2 === 1 ? element("code", {}, part) : part);
}

function titleOf(spec) {
  return spec.group ? spec.title + ", " + spec.group : spec.title;
}

// An empty drawing in a figure's chart, as wide as the page has room for. Screen readers hear
// `words`, and have the table below.
function drawing(figure, height, words) {
  const width = Math.max(220, figure.chart.clientWidth);
  figure.chart.textContent = "";
  return d3.select(figure.chart).append("svg")
      .attr({ viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": words })
      .datum({ width: width, height: height });
}

// Keys of the colors and dashes in a figure.
function drawKeys(figure, keys) {
  figure.keys.textContent = "";
  for (const key of keys) {
    const item = element("li", {});
    const swatch = d3.select(item).append("svg").attr({ viewBox: "0 0 26 12", "aria-hidden": true });
    if (key.fill !== undefined) {
      swatch.append("rect").attr({ class: "f" + key.fill, width: 26, height: 12 });
    } else {
      swatch.append("line").attr({ class: key.line, x1: 0, x2: 26, y1: 6, y2: 6 });
    }
    item.append(key.text);
    figure.keys.append(item);
  }
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
