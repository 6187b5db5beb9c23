// Scores over the learning rate, a curve for each choice with the band of its seeds. A rate at which
// a run is lost has a cross at the bottom, and so has a loss that would flatten all others.

// The greatest mean that is drawn as a point.
function limitOfRates(spec, points) {
  const least = d3.min(points, point => point.mean);
  return spec.least && least > 0 ? 1000 * least : Infinity;
}

// Runs of points without a cross, as a line does not go on across those.
function wholeParts(points, limit) {
  const parts = [[]];
  for (const point of points) {
    if (!(point.mean <= limit)) parts.push([]);
    else parts[parts.length - 1].push(point);
  }
  return parts.filter(part => part.length > 0);
}

function rateRowWords(spec, row) {
  const whole = row.points.filter(point => point.mean !== undefined);
  if (whole.length === 0) return labelWords(row) + " lost at all rates";
  const wanted = (spec.least ? d3.min : d3.max)(whole, point => point.mean);
  return labelWords(row) + " best at " + numberText(whole.find(point => point.mean === wanted).rate);
}

function drawRates(figure) {
  const spec = figure.spec;
  const keys = spec.rows.map((row, number) => ({ line: profileClass(number), text: labelWords(row) }));
  if (spec.taken !== undefined) keys.push({ line: "reference", text: "the " + spec.across + " of the comparison" });
  const svg = drawing(figure, 260, titleOf(spec) + ": " +
      spec.rows.map(row => rateRowWords(spec, row)).join("; ") + ". The table below has all.",
  spec.rows.length > 1 || spec.taken !== undefined ? keys : []);
  const { width, height } = svg.datum();
  const bottom = height - 34;
  const points = [].concat(...spec.rows.map(row => row.points));
  const limit = limitOfRates(spec, points);
  const whole = points.filter(point => point.mean <= limit);
  const rates = [...new Set(points.map(point => point.rate))].sort((a, b) => a - b);
  const x = d3.scale.log().domain(d3.extent(rates));
  const ends = whole.length === 0 ? [0, 1]
    : [d3.min(whole, point => point.low), d3.max(whole, point => point.high)];
  const isWide = spec.least && ends[0] > 0 && ends[1] > 10 * ends[0];
  const y = (isWide ? d3.scale.log() : d3.scale.linear()).domain(ends).nice().range([bottom - 12, 10]);
  const values = ticksOf(y, 5);
  drawAxisBelow(svg, x, { least: roomBeside(values), title: spec.across, at: bottom, values: rates });
  drawAxisBeside(svg, y, { values: values, left: x.range()[0], right: width - 14, title: unitWords(spec.value, spec.unit) });
  if (spec.taken !== undefined) {
    svg.append("line").attr({ class: "reference", x1: x(spec.taken), x2: x(spec.taken), y1: 10, y2: bottom });
  }
  spec.rows.forEach((row, number) => {
    const color = number % colors;
    for (const part of wholeParts(row.points, limit)) {
      svg.append("path").attr({
        class: "band f" + color,
        d: d3.svg.area().x(point => x(point.rate)).y0(point => y(point.low)).y1(point => y(point.high))(part),
      });
      svg.append("path").attr({
        class: profileClass(number),
        d: d3.svg.line().x(point => x(point.rate)).y(point => y(point.mean))(part),
      });
    }
    for (const point of row.points) {
      const title = labelWords(row) + " at " + numberText(point.rate) + ": ";
      if (!(point.mean <= limit)) {
        const at = [x(point.rate) + 3 * number, bottom - 5];
        svg.append("path").attr({
          class: "s" + color, "stroke-width": 1.8,
          d: "M" + (at[0] - 4) + "," + (at[1] - 4) + "l8,8m0,-8l-8,8",
        }).append("title").text(title + (point.mean === undefined ? point.lost + " lost" : numberText(point.mean)));
      } else {
        svg.append("circle").attr({ class: "f" + color, r: 2.5, cx: x(point.rate), cy: y(point.mean) })
            .append("title").text(title + numberText(point.mean));
      }
    }
  });
}

function tableOfRates(figure) {
  const spec = figure.spec;
  const rows = [].concat(...spec.rows.map(row => row.points.map(point => [
    labelWords(row), numberText(point.rate),
    point.mean === undefined ? "" : numberText(point.mean),
    point.mean === undefined ? "" : numberText(point.low) + " to " + numberText(point.high), String(point.lost)])));
  return tableOf(titleOf(spec), ["choice", spec.across, unitWords(spec.value, spec.unit), "seeds", "lost runs"], rows);
}
