// Performance profiles: how often each choice comes how close to the best.

// The share, in percent, of a row's problems that end at most so far behind.
function shareWithin(spec, row, difference) {
  return 100 * d3.bisectRight(row.behind, difference) / spec.problems;
}

function profileWords(spec, row) {
  return row.label + " best on " + numberText(shareWithin(spec, row, 0)) + " %";
}

function profileClass(number) {
  return "curve s" + number % colors + " d" + Math.floor(number / colors) % dashes;
}

function drawProfile(figure) {
  const spec = figure.spec;
  const svg = drawing(figure, 260, titleOf(spec) + ": " +
      spec.rows.map(row => profileWords(spec, row)).join("; ") + ". The table below has all.",
  spec.rows.map((row, number) => ({ line: profileClass(number), text: profileWords(spec, row) })));
  const { width, height } = svg.datum();
  const bottom = height - 34;
  // Beyond that all that will ever come close has.
  const most = d3.max(spec.rows, row => d3.quantile(row.behind, 0.9)) || 1;
  const x = d3.scale.linear().domain([0, most]).nice();
  const y = d3.scale.linear().domain([0, 100]).range([bottom, 10]);
  const values = ticksOf(y, 5, true);
  drawAxisBelow(svg, x, { least: roomBeside(values), title: spec.across, at: bottom });
  drawAxisBeside(svg, y, { values: values, left: x.range()[0], right: width - 14, title: spec.unit });
  const end = x.domain()[1];
  spec.rows.forEach((row, number) => {
    const steps = [0].concat(row.behind.filter(value => value > 0 && value < end), [end]);
    svg.append("path").attr({
      class: profileClass(number),
      d: d3.svg.line().interpolate("step-after").x(value => x(value))
          .y(value => y(shareWithin(spec, row, value)))(steps),
    }).append("title").text(profileWords(spec, row));
  });
}

function tableOfProfile(figure) {
  const spec = figure.spec;
  const at = [0, 0.1, 0.5, 1, 2, 5];
  return tableOf(titleOf(spec) + ", in % of " + spec.problems,
      ["choice", "best"].concat(at.slice(1).map(value => "within " + value)),
      spec.rows.map(row =>
          [row.label].concat(at.map(value => numberText(shareWithin(spec, row, value))))));
}
