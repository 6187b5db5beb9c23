// Curves of runs against the chosen axis.

// The curves of a figure: each of one run and one of the figure's numbers.
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

function looksOf(spec, curve) {
  if (curve.context) return { color: "context", dash: 0 };
  const alone = data.runs.length === 1;
  if (spec.small) return { color: "s0", fill: "f0", dash: curve.number };
  const color = alone ? curve.number : curve.run % colors;
  const dash = alone ? curve.number : curve.number + Math.floor(curve.run / colors) % dashes;
  return { color: "s" + color, fill: "f" + color, dash: dash % dashes };
}

function extent(curves) {
  let low = Infinity;
  let high = -Infinity;
  for (const curve of curves) {
    curve.low.forEach(value => { if (value < low) low = value; });
    curve.high.forEach(value => { if (value > high) high = value; });
  }
  return [low, high];
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

function valueScale(spec, range, pixels) {
  let [low, high] = range;
  if (spec.size) low = 0;
  if (!spec.size && low > 0 && high / low > 1000) {
    return d3.scale.log().domain([low, high]).range(pixels);
  }
  if (low === high) {
    low -= Math.abs(low) / 10 || 1;
    high += Math.abs(high) / 10 || 1;
  }
  return d3.scale.linear().domain([low, high]).range(pixels).nice();
}

function isLog(scale) {
  return Boolean(scale.base);
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

function markClass(kind) {
  return "mark mark-" + data.marks.indexOf(kind);
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
  if (curve.band && !curve.context) {
    const area = d3.svg.area()
        .defined((_, i) => !isLog(y) || curve.low[i] > 0)
        .interpolate(spec.size ? "step-before" : "linear")
        .x((_, i) => x(curve.x[i])).y0((_, i) => y(curve.low[i])).y1((_, i) => y(curve.high[i]));
    svg.append("path").attr({ class: "band " + looks.fill, d: area(curve.x) });
  }
  svg.append("path").attr({
    class: "curve " + looks.color + " d" + looks.dash,
    d: path(curve, spec, x, y, curve.mean),
  });
  // A few points are seen as such; one alone has no line.
  if (curve.x.length <= 30 && !curve.context && !spec.size) {
    svg.selectAll(null).data(curve.x.map((at, i) => [at, curve.mean[i]])
        .filter(point => !isLog(y) || point[1] > 0))
        .enter().append("circle").attr({
          class: looks.fill, r: spec.small ? 1.5 : 2.5,
          cx: point => x(point[0]), cy: point => y(point[1]),
        });
  }
}

function drawAxes(svg, size, x, y, spec) {
  const ticks = Math.max(2, Math.floor(size.inner / 90));
  svg.append("g").attr({ class: "axis", transform: "translate(0," + size.bottom + ")" })
      .call(d3.svg.axis().scale(x).orient("bottom").ticks(ticks).tickSize(4).tickFormat(tickText));
  const left = d3.svg.axis().scale(y).orient("left").tickSize(-size.inner).tickFormat(tickText);
  if (isLog(y)) {
    const powers = y.ticks().filter(value => Number.isInteger(Math.log10(value)));
    left.tickValues(powers.length >= 2 ? powers : y.domain());
  } else {
    left.ticks(spec.small ? 4 : 6);
  }
  svg.append("g").attr({ class: "axis", transform: "translate(" + size.left + ",0)" }).call(left);
  svg.append("text").attr({ x: size.right, y: size.height - 3, "text-anchor": "end" })
      .text(axisLabel());
}

function lineKeys(spec, curves, marks) {
  const keys = [];
  if (spec.curves.length > 1) {
    const numbers = [...new Set(curves.map(curve => curve.number))].sort();
    for (const number of numbers) {
      const curve = curves.find(one => one.number === number && !one.context);
      if (!curve) continue;
      const looks = looksOf(spec, curve);
      const color = data.runs.length === 1 ? looks.color : "s7";
      const dash = data.runs.length === 1 ? looks.dash : number;
      keys.push({ line: "curve " + color + " d" + dash, text: curve.label });
    }
  }
  for (const kind of spec.marks || []) {
    const count = marks.filter(mark => mark.kind === kind).length;
    if (count > 0) keys.push({ line: markClass(kind), text: kind + " (" + count + ")" });
  }
  return keys;
}

function lineWords(spec, curves) {
  const shown = curves.filter(curve => !curve.context);
  const [low, high] = extent(shown);
  return titleOf(spec) + " against " + axisLabel() + ": " + shown.length +
      (shown.length === 1 ? " curve" : " curves") + " between " + numberText(low) + " and " +
      numberText(high) + ". Arrow keys read values; the table below has all.";
}

function drawLines(figure) {
  const spec = figure.spec;
  const curves = curvesOf(spec);
  figure.node.hidden = curves.length === 0;
  if (curves.length === 0) return;
  const svg = drawing(figure, spec.small ? 150 : 240, lineWords(spec, curves));
  const { width, height } = svg.datum();
  const size = { left: 52, right: width - 14, bottom: height - 34, height: height };
  size.inner = size.right - size.left;
  const last = d3.max(curves, curve => curve.x[curve.x.length - 1]);
  const first = Math.min(0, d3.min(curves, curve => curve.x[0]));
  const x = d3.scale.linear().domain([first, last || 1]).range([size.left, size.right]);
  const y = valueScale(spec, rangeOf(spec, curves), [size.bottom, 10]);
  drawAxes(svg, size, x, y, spec);
  const marks = marksOf(spec, curves);
  svg.selectAll(null).data(marks).enter().append("line").attr({
    class: mark => markClass(mark.kind),
    x1: mark => x(mark.at[chosen.axis]), x2: mark => x(mark.at[chosen.axis]),
    y1: 10, y2: size.bottom,
  });
  for (const curve of curves) drawCurve(svg, spec, curve, x, y);
  drawKeys(figure, lineKeys(spec, curves, marks));
  if (isLog(y)) figure.unit.textContent = [spec.unit, "logarithmic"].filter(Boolean).join(", ");
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
