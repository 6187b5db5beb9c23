// What threads or cores did within a step: a lane for each, and lines where sums met.

// "3", or "4 to 7" of those that were computed in one pass; empty of work on the whole step.
function minibatchWords(span) {
  if (span.length < 5) return "";
  return span[3] === span[4] ? String(span[3]) : span[3] + " to " + span[4];
}

function spanWords(spec, span) {
  const of = minibatchWords(span);
  return spec.activities[span[0]] + (of ? " of minibatch " + of : "") + ", " +
      numberText(span[2] - span[1]) + " ms from " + numberText(span[1]);
}

function drawSpans(figure) {
  const spec = figure.spec;
  const tall = Math.max(7, Math.min(20, Math.floor(320 / spec.lanes.length)));
  const bottom = spec.lanes.length * tall + 8;
  const sums = spec.activities.map((name, i) => d3.sum(spec.lanes, lane =>
      d3.sum(lane.spans.filter(span => span[0] === i), span => span[2] - span[1])));
  const words = spec.activities.map((name, i) => name + " " + numberText(sums[i]) + " ms")
      .filter((text, i) => sums[i] > 0).join(", ");
  const svg = drawing(figure, bottom + 40, titleOf(spec) + ": " + spec.lanes.length +
      " lanes; together " + words + ". The table below has all.",
  spec.activities.map((name, i) => ({ fill: "f" + i, text: name + " " + numberText(sums[i]) }))
      .filter((key, i) => sums[i] > 0));
  const x = d3.scale.linear().domain([0, spec.duration]);
  drawAxisBelow(svg, x, { least: 62, title: "ms", at: bottom });
  spec.lanes.forEach((lane, i) => {
    const top = 8 + i * tall;
    svg.append("line").attr({ class: "rule", x1: x(0), x2: x(spec.duration), y1: top + tall - 1, y2: top + tall - 1 });
    for (const span of lane.spans) {
      svg.append("rect").attr({
        class: "f" + span[0], x: x(span[1]), y: top, height: tall - 2,
        width: Math.max(0.4, x(span[2]) - x(span[1])),
      }).append("title").text(lane.name + ": " + spanWords(spec, span));
    }
  });
  const middle = place => 8 + place * tall + (tall - 2) / 2;
  for (const [from, left, to, taken] of spec.meetings) {
    svg.append("line").attr({
      class: "meeting", x1: x(left), y1: middle(from), x2: x(taken), y2: middle(to),
    }).append("title").text("the sum of " + spec.lanes[from].name + ", taken by " + spec.lanes[to].name);
  }
  const every = Math.ceil(13 / tall);
  spec.lanes.forEach((lane, i) => {
    if (i % every) return;
    svg.append("text").attr({ x: 56, y: 8 + i * tall + Math.min(tall, 12), "text-anchor": "end" })
        .text(lane.name);
  });
  figure.readout.textContent = spec.left_out ? "There was more; the timeline itself has all." : "";
}

function tableOfSpans(figure) {
  const spec = figure.spec;
  const rows = [];
  for (const lane of spec.lanes) {
    for (const span of lane.spans) {
      rows.push([lane.name, spec.activities[span[0]], minibatchWords(span),
        numberText(span[1]), numberText(span[2] - span[1])]);
    }
  }
  return tableOf(titleOf(spec), ["lane", "activity", "minibatch", "begins at, ms", "takes, ms"], rows);
}
