// Bars whose parts add up: where time went.

function shownRows(spec) {
  return spec.rows.filter(row => row.run === undefined || chosen.runs.has(row.run));
}

function sumOf(row) {
  return d3.sum(row.parts, part => part.value);
}

function drawBars(figure) {
  const spec = figure.spec;
  const most = 40;
  const all = shownRows(spec);
  const rows = all.slice(0, most);
  figure.node.hidden = rows.length === 0;
  if (rows.length === 0) return;
  const named = data.runs.length > 1;
  const pitch = named ? 38 : 30;
  const words = titleOf(spec) + ": " + rows.map(row => row.label + " " +
      row.parts.map(part => part.name + " " + numberText(part.value)).join(", ")).join("; ");
  const only = rows.length === 1 ? rows[0] : null;
  const keys = rows[0].parts.map((part, number) => ({
    fill: "f" + number, text: only ? part.name + " " + numberText(part.value) : part.name,
  })).filter((key, number) => rows.some(row => row.parts[number].value > 0));
  const svg = drawing(figure, rows.length * pitch + 36, words, keys);
  const { width, height } = svg.datum();
  const x = d3.scale.linear().domain([0, d3.max(rows, sumOf)]);
  drawAxisBelow(svg, x, { least: 4, title: spec.unit, at: height - 34 });
  rows.forEach((row, i) => {
    const top = i * pitch + (named ? 16 : 4);
    if (named) {
      svg.append("text").attr({ class: "strong", x: 4, y: top - 4 }).text(shortened(row.label, width - 8));
    }
    let from = 0;
    row.parts.forEach((part, number) => {
      svg.append("rect").attr({
        class: "f" + number, x: x(from), y: top, height: 18,
        width: Math.max(0, x(from + part.value) - x(from) - (part.value > 0 ? 1 : 0)),
      }).append("title").text(part.name + ": " + numberText(part.value) + " " + spec.unit);
      from += part.value;
    });
  });
  figure.readout.textContent =
      all.length > most ? "The first " + most + " of " + all.length + "; the table has all." : "";
}

function tableOfBars(figure) {
  const spec = figure.spec;
  const parts = spec.rows[0].parts.map(part => part.name + ", " + spec.unit);
  return tableOf(titleOf(spec), ["run"].concat(parts),
      shownRows(spec).map(row =>
          [row.label].concat(row.parts.map(part => numberText(part.value)))));
}
