// Means with their intervals, a row for each choice.

const verdictColors = { best: 2, better: 2, tied: 0, worse: 1, untested: 7, baseline: 7, lost: 6 };

function verdictColor(row) {
  return verdictColors[row.verdict] === undefined ? 7 : verdictColors[row.verdict];
}

function intervalRange(spec) {
  const values = spec.zero ? [0] : [];
  for (const row of spec.rows) {
    values.push(...(row.points || []));
    if (row.mean === undefined) continue;
    values.push(row.mean - (row.half || 0), row.mean + (row.half || 0));
  }
  return values.length === 0 ? [0, 1] : d3.extent(values);
}

function rowWords(row) {
  return row.label + " " + row.text + (row.verdict === "-" ? "" : " " + row.verdict);
}

function drawIntervals(figure) {
  const spec = figure.spec;
  const pitch = 44;
  const svg = drawing(figure, spec.rows.length * pitch + 36,
      titleOf(spec) + ": " + spec.rows.map(rowWords).join("; "));
  const { width, height } = svg.datum();
  let [low, high] = intervalRange(spec);
  if (low === high) {
    low -= 1;
    high += 1;
  }
  const x = d3.scale.linear().domain([low, high]).range([8, width - 14]).nice();
  svg.append("g").attr({ class: "axis", transform: "translate(0," + (height - 30) + ")" })
      .call(d3.svg.axis().scale(x).orient("bottom").ticks(Math.floor(width / 90)).tickSize(4)
          .tickFormat(tickText));
  spec.rows.forEach((row, i) => drawInterval(svg, spec, row, i * pitch, x, width));
}

function drawInterval(svg, spec, row, top, x, width) {
  const words = row.text + (row.verdict === "-" ? "" : "  " + row.verdict);
  svg.append("text").attr({ class: "strong", x: 8, y: top + 15 })
      .text(shortened(row.label, width - 7 * words.length));
  svg.append("text").attr({ x: width - 14, y: top + 15, "text-anchor": "end" }).text(words);
  const middle = top + 29;
  svg.append("line").attr({ class: "rule", x1: 8, x2: width - 14, y1: middle, y2: middle });
  const color = verdictColor(row);
  if (spec.zero) {
    svg.append("line")
        .attr({ class: "cursor", x1: x(0), x2: x(0), y1: middle - 8, y2: middle + 8 });
  }
  for (const value of row.points || []) {
    svg.append("circle").attr({ class: "seed s" + color, cx: x(value), cy: middle, r: 3 });
  }
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
  return tableOf(titleOf(spec), ["choice", "result", "verdict", "seeds"],
      spec.rows.map(row =>
          [row.label, row.text, row.verdict, (row.points || []).map(numberText).join(", ")]));
}
