// Curves of runs against the chosen axis.

// The curves of a figure: each of one run, or of the mean of several, and one of the figure's numbers.
function curvesOf(spec) {
  const curves = [];
  const add = (index, context) => {
    const run = data.runs[index];
    spec.curves.forEach((curve, number) => {
      const of = run[curve.of];
      const values = of && of.numbers[curve.key];
      const x = of && of.axes[chosen.axis];
      if (!values || !x) return;
      const several = !Array.isArray(values);
      const mean = several ? values.mean : values;
      // Some numbers are measured at every fifth step, say: their points are joined.
      const there = d3.range(x.length).filter(i => mean[i] !== null);
      if (there.length === 0) return;
      const pick = list => there.map(i => list[i]);
      curves.push({
        run: index, name: run.name, label: curve.label, number: number, context: context,
        x: pick(x), mean: pick(mean), band: several,
        low: several ? pick(values.low) : pick(mean),
        high: several ? pick(values.high) : pick(mean),
      });
    });
  };
  for (const index of spec.context || []) add(index, true);
  for (const index of spec.runs || [...chosen.runs].sort((a, b) => a - b)) add(index, false);
  return curves;
}

// A dash tells the curves of one run apart, or runs beyond the last color.
function looksOf(spec, curve) {
  if (curve.context) return { color: "context", dash: 0 };
  const run = data.runs[curve.run];
  if (run.baseline) return { color: "base", fill: "fbase", dash: 0 };
  if (spec.small) return { color: "s0", fill: "f0", dash: curve.number };
  const place = data.runs.length === 1 ? curve.number : run.color === undefined ? curve.run : run.color;
  const round = data.runs.length === 1 ? place : Math.floor(place / colors);
  return { color: "s" + place % colors, fill: "f" + place % colors, dash: round % dashes };
}

// From the least to the greatest of all values, and of the means that a logarithm has.
function extent(curves) {
  const range = { low: Infinity, high: -Infinity, least: Infinity, most: -Infinity, positive: true };
  for (const curve of curves) {
    curve.mean.forEach((value, i) => {
      range.low = Math.min(range.low, curve.low[i]);
      range.high = Math.max(range.high, curve.high[i]);
      range.positive = range.positive && value > 0;
      if (value <= 0) return;
      range.least = Math.min(range.least, value);
      range.most = Math.max(range.most, value);
    });
  }
  return range;
}

// Small figures of one section share their scale, so that they can be compared.
const shared = new Map();
function rangeOf(spec, curves) {
  if (!spec.small) return extent(curves);
  const key = chosen.axis + " " + spec.curves[0].key;
  if (!shared.has(key)) {
    const all = data.runs.map((run, index) => index);
    shared.set(key, extent(curvesOf({ runs: all, curves: spec.curves })));
  }
  return shared.get(key);
}

// A logarithmic scale is that of the means: the least of many losses would leave these no room.
function valueScale(spec, range) {
  const wide = range.positive && range.most / range.least > 1000;
  const wanted = chosen.scale === "log" || (chosen.scale === "auto" && wide && !spec.size);
  if (wanted && range.least < range.most) {
    return d3.scale.log().domain([range.least, range.most]).clamp(true);
  }
  let { low, high } = range;
  if (spec.size) low = Math.min(0, low);
  if (low === high) {
    low -= Math.abs(low) / 10 || 1;
    high += Math.abs(high) / 10 || 1;
  }
  return d3.scale.linear().domain([low, high]).nice();
}

// The mean of each value and its neighbours, over the chosen share of the curve.
function smoothed(values) {
  const reach = Math.floor(values.length * chosen.smoothing / 200);
  if (reach === 0) return values;
  return values.map((_, i) => d3.mean(values.slice(Math.max(0, i - reach), i + reach + 1)));
}

function marksOf(spec, curves) {
  const runs = new Set(curves.map(curve => curve.run));
  // With more runs nobody can tell whose they are.
  if (!spec.marks || spec.marks.length === 0 || runs.size > 2) return [];
  const marks = [];
  for (const run of runs) {
    for (const mark of data.runs[run].marks || []) {
      if (spec.marks.includes(mark.kind)) marks.push(mark);
    }
  }
  return marks;
}

// Kinds of marks have symbols.
function drawMark(svg, kind, x, y) {
  const shapes = d3.svg.symbolTypes;
  return svg.append("path").attr({
    class: "mark mark-" + data.marks.indexOf(kind), transform: "translate(" + x + "," + y + ")",
    d: d3.svg.symbol().type(shapes[data.marks.indexOf(kind) % shapes.length]).size(36)(),
  });
}

function drawMarks(svg, marks, x, top, bottom) {
  for (const mark of marks) {
    const at = x(mark.at[chosen.axis]);
    svg.append("line").attr({ class: "marked", x1: at, x2: at, y1: top, y2: bottom });
    drawMark(svg, mark.kind, at, top).append("title").text(mark.kind + ", step " + mark.at.steps + ": " + mark.text);
  }
}

// A path over the values; a logarithm has those above 0.
function path(curve, spec, x, y, values) {
  return d3.svg.line()
      .defined((_, i) => !isLog(y) || values[i] > 0)
      .interpolate(spec.size ? "step-before" : "linear")
      .x((_, i) => x(curve.x[i])).y((_, i) => y(values[i]))(curve.x);
}

function drawCurve(svg, spec, curve, x, y) {
  const looks = looksOf(spec, curve);
  const line = "curve " + looks.color + " d" + looks.dash;
  if (curve.band && !curve.context) {
    const area = d3.svg.area()
        .defined((_, i) => !isLog(y) || curve.high[i] > 0)
        .interpolate(spec.size ? "step-before" : "linear")
        .x((_, i) => x(curve.x[i])).y1((_, i) => y(curve.high[i]))
        .y0((_, i) => isLog(y) && curve.low[i] <= 0 ? y.range()[0] : y(curve.low[i]));
    svg.append("path").attr({ class: "band " + looks.fill, d: area(curve.x) });
  }
  const values = spec.size || curve.context ? curve.mean : smoothed(curve.mean);
  if (values !== curve.mean) {
    svg.append("path").attr({ class: line + " raw", d: path(curve, spec, x, y, curve.mean) });
  }
  svg.append("path").attr({ class: line, d: path(curve, spec, x, y, values) });
  // A few points are seen as such; one alone has no line.
  if (curve.x.length <= 30 && !curve.context && !spec.size) {
    svg.selectAll(null).data(curve.x.map((at, i) => [at, values[i]])
        .filter(point => !isLog(y) || point[1] > 0))
        .enter().append("circle").attr({
          class: looks.fill, r: spec.small ? 1.5 : 2.5,
          cx: point => x(point[0]), cy: point => y(point[1]),
        });
  }
}

function lineKeys(spec, curves, marks) {
  const keys = [];
  const shown = curves.filter(curve => !curve.context);
  // A small figure has the curves of one choice, whose name is its title.
  if ((shown.length > 1 || data.runs.length > 1) && !spec.small) {
    for (const curve of shown) {
      const looks = looksOf(spec, curve);
      const baseline = data.runs[curve.run].baseline ? " (baseline)" : "";
      keys.push({ line: "curve " + looks.color + " d" + looks.dash, text: nameOf(curve, shown, spec) + baseline });
    }
  }
  for (const kind of spec.marks || []) {
    const count = d3.sum(marks.filter(mark => mark.kind === kind), mark => mark.count);
    if (count > 0) keys.push({ mark: kind, text: kind + " (" + count + ")" });
  }
  return keys;
}

function lineWords(spec, curves) {
  const shown = curves.filter(curve => !curve.context);
  const { low, high } = extent(shown);
  return titleOf(spec) + " against " + axisLabel() + ": " + shown.length +
      (shown.length === 1 ? " curve" : " curves") + " between " + numberText(low) + " and " +
      numberText(high) + ". Arrow keys read values; the table below has all.";
}

// The text says what the values are, and what was done to them.
function valueWords(spec, isLogarithmic) {
  const smoothing = chosen.smoothing > 0 && !spec.size ? "mean over " + chosen.smoothing + " %" : "";
  return [unitWords(spec.value || spec.title, spec.unit), isLogarithmic ? "logarithmic" : "", smoothing]
      .filter(Boolean).join(", ");
}

function drawLines(figure) {
  const spec = figure.spec;
  const curves = curvesOf(spec);
  figure.node.hidden = curves.length === 0;
  if (curves.length === 0) return;
  const marks = marksOf(spec, curves);
  const svg = drawing(figure, spec.small ? 150 : 240, lineWords(spec, curves), lineKeys(spec, curves, marks));
  const { width, height } = svg.datum();
  const size = { top: marks.length > 0 ? 16 : 10, bottom: height - 34 };
  const y = valueScale(spec, rangeOf(spec, curves)).range([size.bottom, size.top]);
  const values = ticksOf(y, spec.small ? 4 : 6, spec.whole);
  const left = roomBeside(values);
  const last = d3.max(curves, curve => curve.x[curve.x.length - 1]);
  const first = Math.min(0, d3.min(curves, curve => curve.x[0]));
  const x = d3.scale.linear().domain([first, last || 1]);
  drawAxisBelow(svg, x, { least: left, title: axisLabel(), at: size.bottom, whole: axisOf().whole });
  drawAxisBeside(svg, y, { values: values, left: x.range()[0], right: width - 14, title: valueWords(spec, isLog(y)) });
  for (const curve of curves) drawCurve(svg, spec, curve, x, y);
  drawMarks(svg, marks, x, size.top - 6, size.bottom);
  readByPointer(figure, svg, curves.filter(curve => !curve.context), x, size);
}

function tableOfLines(figure) {
  const rows = [];
  const spec = figure.spec;
  for (const curve of curvesOf(spec).filter(one => !one.context)) {
    curve.x.forEach((at, i) => {
      const row = [numberText(at), curve.name];
      if (spec.curves.length > 1) row.push(curve.label);
      row.push(numberText(curve.mean[i]), numberText(curve.low[i]), numberText(curve.high[i]));
      rows.push(row);
    });
  }
  const head = [axisLabel(), "run"];
  if (spec.curves.length > 1) head.push("curve");
  return tableOf(titleOf(spec), head.concat("mean", "least", "greatest"), rows);
}
