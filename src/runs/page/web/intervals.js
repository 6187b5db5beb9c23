// Means with their intervals, or what runs took to reach a target, a row for each choice.

const verdictColors = { best: 2, better: 2, tied: 0, worse: 1, untested: 7, baseline: 7, lost: 6 };

function verdictColor(row) {
  // Verdicts at a learning rate that was not tuned have a mark.
  const verdict = row.verdict.replace("*", "");
  return verdictColors[verdict] === undefined ? 7 : verdictColors[verdict];
}

// The axis against which a cost is shown: the chosen one, or the first that the runs have.
function costAxis(spec) {
  const has = key => spec.rows.some(row => row.costs[key]);
  return has(chosen.axis) ? axisOf() : data.axes.find(axis => has(axis.key));
}

// The rows of a figure as they are drawn: of costs those of the axis.
function rowsOf(spec) {
  if (!spec.costs) return spec.rows;
  const key = costAxis(spec).key;
  return spec.rows.map(row => Object.assign({}, row, {
    points: row.costs[key], mean: row.medians[key],
    text: row.text + (row.medians[key] === undefined ? "" : ", median " + numberText(row.medians[key])),
  }));
}

function intervalRange(spec, rows, reference) {
  const values = spec.zero || spec.costs ? [0] : [];
  if (reference !== undefined) values.push(reference);
  for (const row of rows) {
    values.push(...(row.points || []));
    if (row.mean === undefined) continue;
    values.push(row.mean - (row.half || 0), row.mean + (row.half || 0));
  }
  const [low, high] = values.length === 0 ? [0, 1] : d3.extent(values);
  return low === high ? [low - 1, high + 1] : [low, high];
}

// This text stands at the right of a row.
function resultWords(row) {
  return row.text + (row.verdict === "-" ? "" : "  " + row.verdict);
}

function labelWords(row) {
  return row.label + (row.baseline ? " (baseline)" : "");
}

function drawIntervals(figure) {
  const spec = figure.spec;
  const rows = rowsOf(spec);
  const pitch = 44;
  const middle = spec.costs ? "median" : "mean";
  const keys = [{ dot: "f7", text: middle }];
  if (rows.some(row => row.half)) keys.push({ line: "interval s7", text: "95 % interval" });
  if (rows.some(row => row.points && row.points.length > 0)) keys.push({ dot: "seed s7", text: "one seed" });
  const reference = spec.costs ? (spec.references || {})[costAxis(spec).key] : spec.reference;
  if (reference !== undefined) keys.push({ line: "reference", text: middle + " of the baseline" });
  const svg = drawing(figure, rows.length * pitch + 36,
      titleOf(spec) + ": " + rows.map(row => labelWords(row) + " " + resultWords(row)).join("; "), keys);
  const axis = spec.costs ? costAxis(spec) : { label: unitWords(spec.value || spec.title, spec.unit) };
  const x = d3.scale.linear().domain(intervalRange(spec, rows, reference)).nice();
  drawAxisBelow(svg, x, { least: 8, title: axis.label, at: rows.length * pitch + 2, whole: axis.whole });
  rows.forEach((row, i) => drawInterval(svg, row, i * pitch, x, spec.zero ? 0 : reference));
}

function drawInterval(svg, row, top, x, reference) {
  const words = resultWords(row);
  const { width } = svg.datum();
  svg.append("text").attr({ class: "strong", x: 8, y: top + 15 })
      .text(shortened(labelWords(row), width - 36 - widthOf(words)));
  svg.append("text").attr({ x: width - 14, y: top + 15, "text-anchor": "end" }).text(words);
  const middle = top + 29;
  svg.append("line").attr({ class: "rule", x1: 8, x2: width - 14, y1: middle, y2: middle });
  const color = verdictColor(row);
  if (reference !== undefined) {
    const at = x(reference);
    svg.append("line").attr({ class: "reference", x1: at, x2: at, y1: middle - 9, y2: middle + 9 });
  }
  (row.points || []).forEach((value, i) => {
    svg.append("circle").attr({ class: "seed s" + color, cx: x(value), cy: middle, r: 3 })
        .append("title").text("seed " + row.seeds[i] + ": " + numberText(value));
  });
  if (row.mean === undefined) return;
  if (row.half) {
    svg.append("line").attr({
      class: "interval s" + color, x1: x(row.mean - row.half), x2: x(row.mean + row.half),
      y1: middle, y2: middle,
    });
  }
  svg.append("circle").attr({ class: "f" + color, cx: x(row.mean), cy: middle, r: 5 });
}

function tableOfIntervals(figure) {
  const spec = figure.spec;
  return tableOf(titleOf(spec) + (spec.costs ? ", " + costAxis(spec).label : ""),
      ["choice", "result", "verdict", "seeds"],
      rowsOf(spec).map(row => [labelWords(row), row.text, row.verdict, (row.points || [])
          .map((value, i) => row.seeds[i] + ": " + numberText(value)).join(", ")]));
}
