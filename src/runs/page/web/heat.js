// A map of cores and steps: how many substeps each core had.

// Neighbours of one value are one rectangle.
function runsOf(values) {
  const runs = [];
  values.forEach((value, i) => {
    const last = runs[runs.length - 1];
    if (last && last.value === value) {
      last.end = i + 1;
    } else {
      runs.push({ begin: i, end: i + 1, value: value });
    }
  });
  return runs.filter(run => run.value !== null);
}

function coreNames(spec, row) {
  const first = row * spec.stride;
  const last = Math.min(spec.cores, first + spec.stride) - 1;
  return first === last ? "core " + first : "cores " + first + " to " + last;
}

function stepNames(spec, begin, end) {
  const first = begin * spec.width + 1;
  const last = Math.min(spec.steps, end * spec.width);
  return first === last ? "step " + first : "steps " + first + " to " + last;
}

function drawHeat(figure) {
  const spec = figure.spec;
  const most = d3.max(spec.rows, row => d3.max(row));
  const least = d3.min(spec.rows, row => d3.min(row.filter(value => value !== null)));
  const tall = Math.max(5, Math.min(16, Math.floor(240 / spec.rows.length)));
  const strength = d3.scale.linear().domain([Math.min(least, most - 1), most]).range([0.25, 1]);
  const keys = [...new Set([0, 0.25, 0.5, 0.75, 1].map(share => Math.round(least + share * (most - least))))]
      .map(value => ({ fill: "cell", opacity: strength(value), text: numberText(value) }));
  keys[keys.length - 1].text += keys[keys.length - 1].text === "1" ? " substep" : " substeps";
  const svg = drawing(figure, spec.rows.length * tall + 48, titleOf(spec) + ": " + spec.cores +
      " cores in " + spec.steps + " steps, from " + numberText(least) + " to " + numberText(most) +
      " substeps. The table below has all.", keys);
  const bottom = spec.rows.length * tall + 8;
  const x = d3.scale.linear().domain([0, spec.steps]);
  drawAxisBelow(svg, x, { least: 52, title: "steps", at: bottom, whole: true });
  const at = column => x(Math.min(spec.steps, column * spec.width));
  spec.rows.forEach((row, i) => {
    for (const run of runsOf(row)) {
      svg.append("rect").attr({
        class: "cell", x: at(run.begin), width: at(run.end) - at(run.begin),
        y: 8 + i * tall, height: tall - 0.5, "fill-opacity": strength(run.value),
      }).append("title").text(coreNames(spec, i) + ", " + stepNames(spec, run.begin, run.end) +
          ": " + numberText(run.value) + " substeps");
    }
  });
  const every = Math.ceil(14 / tall);
  for (let i = 0; i < spec.rows.length; i += every * (spec.rows.length > 20 ? 4 : 1)) {
    svg.append("text").attr({ x: 46, y: 8 + i * tall + Math.min(tall, 11), "text-anchor": "end" })
        .text(i * spec.stride);
  }
  svg.append("text").attr({ x: 4, y: svg.datum().height - 3 }).text("core");
  figure.readout.textContent = "Empty where a core took no part.";
}

function tableOfHeat(figure) {
  const spec = figure.spec;
  const rows = [];
  spec.rows.forEach((row, i) => {
    for (const run of runsOf(row)) {
      rows.push([coreNames(spec, i), stepNames(spec, run.begin, run.end), numberText(run.value)]);
    }
  });
  return tableOf(titleOf(spec), ["cores", "steps", "substeps"], rows);
}
