// Axes, whose margins are as wide as their numbers, and legends. All of it is part of a chart, so
// that what is printed or saved has it, too.

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = "11px system-ui, sans-serif";
function widthOf(text) {
  return ruler.measureText(text).width;
}

function isLog(scale) {
  return Boolean(scale.base);
}

// About so many ticks. What is counted has whole ones.
function ticksOf(scale, count, whole) {
  if (isLog(scale)) {
    const isPower = value => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
    const powers = scale.ticks().filter(isPower);
    const every = Math.ceil(powers.length / 8);
    return powers.length >= 2 ? powers.filter((_, i) => i % every === 0) : scale.domain();
  }
  const ticks = scale.ticks(count);
  const kept = whole ? ticks.filter(Number.isInteger) : ticks;
  return kept.length > 0 ? kept : scale.domain().map(Math.round);
}

// The axis below a chart. Gives `x` its pixels: from `least`, or as far to the right as half of the
// first number needs, to where half of the last one ends. Its numbers are among `values`, if these are given.
function drawAxisBelow(svg, x, { least, title, at, whole, values: given }) {
  const width = svg.datum().width;
  x.range([least, width - 14]);
  const every = given && Math.ceil(given.length * 60 / (width - least));
  const values = given ? given.filter((_, i) => i % every === 0)
    : ticksOf(x, Math.max(2, Math.floor((width - least) / 90)), whole);
  const half = value => widthOf(tickText(value)) / 2 + 2;
  // A number at an end of the axis has half of its width beyond it.
  const beyond = d3.max(values, value => half(value) - (width - x(value)));
  const before = d3.max(values, value => half(value) - x(value));
  x.range([least + Math.max(0, before), width - 14 - Math.max(0, beyond)]);
  svg.append("g").attr({ class: "axis", transform: "translate(0," + at + ")" })
      .call(d3.svg.axis().scale(x).orient("bottom").tickValues(values).tickSize(4).tickFormat(tickText));
  svg.append("text").attr({ x: width - 14, y: svg.datum().height - 3, "text-anchor": "end" }).text(title);
}

// The room that the numbers and the title of an axis beside a chart take.
function roomBeside(values) {
  return 26 + d3.max(values, value => widthOf(tickText(value)));
}

// The axis beside a chart, from `top` to `bottom`, with lines across it.
function drawAxisBeside(svg, y, { values, left, right, title }) {
  svg.append("g").attr({ class: "axis", transform: "translate(" + left + ",0)" })
      .call(d3.svg.axis().scale(y).orient("left").tickValues(values).tickSize(left - right).tickFormat(tickText));
  const [bottom, top] = y.range();
  svg.append("text").attr({
    "text-anchor": "middle", transform: "translate(11," + (top + bottom) / 2 + ") rotate(-90)",
  }).text(shortened(title, bottom - top + 20));
}

function unitWords(name, unit) {
  return unit ? name + ", " + unit : name;
}

// A sample of what a key stands for, from `x` on around the height `y`.
function drawSample(svg, key, x, y) {
  const at = { cx: x + 10, cy: y };
  if (key.fill) {
    svg.append("rect")
        .attr({ class: key.fill, x: x, y: y - 5, width: 20, height: 10, "fill-opacity": key.opacity || 1 });
  }
  if (key.line) svg.append("line").attr({ class: key.line, x1: x, x2: x + 20, y1: y, y2: y });
  if (key.dot) svg.append("circle").attr({ class: key.dot, r: 4 }).attr(at);
  if (key.mark !== undefined) drawMark(svg, key.mark, x + 10, y);
}

// Rows of keys with their places.
function placedKeys(keys, width) {
  const most = 40;
  const rows = [];
  let x = Infinity;
  const shown = keys.slice(0, most);
  if (keys.length > most) shown.push({ text: "and " + (keys.length - most) + " more" });
  for (const key of shown) {
    const text = shortened(key.text, width - 40);
    const needed = 26 + widthOf(text) + 16;
    if (x + needed - 16 > width) {
      rows.push([]);
      x = 4;
    }
    rows[rows.length - 1].push({ key: key, text: text, x: x });
    x += needed;
  }
  return rows;
}

// An empty drawing in a figure's chart, as wide as the page has room for, with a legend below it.
// Screen readers hear `words`, and have the table below.
function drawing(figure, height, words, keys = []) {
  const width = Math.max(220, figure.chart.clientWidth);
  const rows = placedKeys(keys, width);
  const all = height + 16 * rows.length + (rows.length > 0 ? 6 : 0);
  figure.chart.textContent = "";
  const svg = d3.select(figure.chart).append("svg")
      .attr({ viewBox: "0 0 " + width + " " + all, role: "img", "aria-label": words })
      .datum({ width: width, height: height });
  rows.forEach((row, i) => {
    const y = height + 12 + 16 * i;
    for (const { key, text, x } of row) {
      drawSample(svg, key, x, y);
      svg.append("text").attr({ class: "key", x: x + 26, y: y + 4 }).text(text);
    }
  });
  return svg;
}
