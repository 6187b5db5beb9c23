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
  const svg = drawing(figure, rows.length * pitch + 36, words);
  const { width, height } = svg.datum();
  const x = d3.scale.linear().domain([0, d3.max(rows, sumOf)]).range([4, width - 14]);
  rows.forEach((row, i) => {
    const top = i * pitch + (named ? 16 : 4);
    if (named) {
      svg.append("text").attr({ class: "strong", x: 4, y: top - 4 }).text(shortened(row.label, width));
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
  svg.append("g").attr({ class: "axis", transform: "translate(0," + (height - 30) + ")" })
      .call(d3.svg.axis().scale(x).orient("bottom").ticks(Math.floor(width / 90)).tickSize(4)
          .tickFormat(tickText));
  const only = rows.length === 1 ? rows[0] : null;
  drawKeys(figure, rows[0].parts.map((part, number) => ({
    fill: number,
    text: only ? part.name + " " + numberText(part.value) : part.name,
  })).filter((key, number) => rows.some(row => row.parts[number].value > 0)));
  figure.readout.textContent =
      all.length > most ? "The first " + most + " of " + all.length + "; the table has all." : "";
}

// About as much of a label as there is room for.
function shortened(text, width) {
  const letters = Math.max(8, Math.floor(width / 6.2));
  return text.length > letters ? text.slice(0, letters - 1) + "\u2026" : text;
}

function tableOfBars(figure) {
  const spec = figure.spec;
  const parts = spec.rows[0].parts.map(part => part.name + ", " + spec.unit);
  return tableOf(titleOf(spec), ["run"].concat(parts),
      shownRows(spec).map(row =>
          [row.label].concat(row.parts.map(part => numberText(part.value)))));
}
