// The page: what can be chosen, and the figures, which are drawn when they come into sight.

const kinds = {
  lines: { draw: drawLines, table: tableOfLines },
  bars: { draw: drawBars, table: tableOfBars },
  heat: { draw: drawHeat, table: tableOfHeat },
  intervals: { draw: drawIntervals, table: tableOfIntervals },
  profile: { draw: drawProfile, table: tableOfProfile },
  rates: { draw: drawRates, table: tableOfRates },
  spans: { draw: drawSpans, table: tableOfSpans },
};

const figures = [];

function draw(figure) {
  figure.drawn = true;
  figure.readout.textContent = "";
  kinds[figure.spec.type].draw(figure);
}

const inSight = new IntersectionObserver(entries => {
  for (const entry of entries) {
    const figure = figures.find(one => one.node === entry.target);
    figure.visible = entry.isIntersecting;
    if (figure.visible && !figure.drawn) draw(figure);
  }
}, { rootMargin: "400px" });

function redrawAll() {
  // A window that is not shown has no width.
  if (document.getElementById("charts").clientWidth === 0) return;
  for (const figure of figures) {
    figure.drawn = false;
    fillTable(figure);
    if (figure.visible || figure.node.hidden) draw(figure);
  }
}

// A table is made when it is opened: most never are.
function fillTable(figure) {
  while (figure.details.children.length > 1) figure.details.lastChild.remove();
  if (figure.details.open) figure.details.append(kinds[figure.spec.type].table(figure));
}

function makeFigure(spec) {
  const save = element("button", { type: "button", class: "save" }, "SVG",
      element("span", { class: "unseen" }, " of " + titleOf(spec)));
  const title = element("figcaption", {}, spec.title + " ",
      element("span", { class: "unit" }, spec.unit || ""), save);
  const figure = {
    spec: spec, drawn: false, visible: false,
    chart: element("div", { class: "chart" }),
    readout: element("output", { class: "readout" }),
    details: element("details", {}, element("summary", {}, "Table",
        element("span", { class: "unseen" }, " of " + titleOf(spec)))),
  };
  figure.node = element("figure", {}, title);
  if (spec.help) figure.node.append(element("p", { class: "help" }, ...marked(spec.help)));
  save.addEventListener("click", () => saveChart(figure));
  figure.node.append(figure.chart, figure.readout, figure.details);
  figure.details.addEventListener("toggle", () => fillTable(figure));
  figures.push(figure);
  return figure.node;
}

function makeSection(section) {
  const small = section.figures.every(spec => spec.small);
  const grid = element("div", { class: small ? "figures small" : "figures" });
  let group;
  for (const spec of section.figures) {
    if (spec.group !== undefined && spec.group !== group) {
      group = spec.group;
      grid.append(element("h3", {}, group));
    }
    grid.append(makeFigure(spec));
  }
  const made = element("section", {}, element("h2", {}, section.title));
  if (section.help) made.append(element("p", { class: "help" }, section.help));
  made.append(grid);
  return made;
}

function choice(type, name, text, checked, onChange) {
  const input = element("input", { type: type, name: name });
  input.checked = checked;
  input.addEventListener("change", () => {
    onChange(input.checked);
    redrawAll();
  });
  return element("label", {}, input, text);
}

function swatch(run) {
  const drawn = d3.select(document.createElementNS("http://www.w3.org/2000/svg", "svg"))
      .attr({ viewBox: "0 0 26 12", width: 26, height: 12, "aria-hidden": true });
  drawn.append("line").attr({
    class: "curve s" + run % colors + " d" + Math.floor(run / colors) % dashes,
    x1: 0, x2: 26, y1: 6, y2: 6,
  });
  return drawn.node();
}

function axisChoices() {
  const there = data.axes.filter(axis => data.runs.some(run =>
      [run.steps, run.epochs].some(of => of && of.axes[axis.key])));
  if (there.length > 0 && !there.some(axis => axis.key === chosen.axis)) chosen.axis = there[0].key;
  return element("fieldset", {}, element("legend", {}, "Curves against"), ...there.map(axis =>
      choice("radio", "axis", axis.label, axis.key === chosen.axis,
          () => { chosen.axis = axis.key; })));
}

function valueChoices() {
  const scales = [["auto", "as fits"], ["linear", "linear"], ["log", "logarithmic"]].map(([key, text]) =>
      choice("radio", "scale", text, key === chosen.scale, () => { chosen.scale = key; }));
  const shares = [[0, "not averaged"], [2, "over 2 %"], [5, "5 %"], [20, "20 % of a curve"]].map(([share, text]) =>
      choice("radio", "smoothing", text, share === chosen.smoothing, () => { chosen.smoothing = share; }));
  return [element("fieldset", {}, element("legend", {}, "Scale"), ...scales),
    element("fieldset", {}, element("legend", {}, "Values"), ...shares)];
}

function runChoices() {
  return element("fieldset", {}, element("legend", {}, "Runs"), ...data.runs.map((run, index) => {
    const label = choice("checkbox", "run", run.name, chosen.runs.has(index), isShown => {
      if (isShown) chosen.runs.add(index);
      else chosen.runs.delete(index);
    });
    label.insertBefore(swatch(index), label.lastChild);
    return label;
  }));
}

function makePage() {
  const place = document.getElementById("charts");
  const sideBySide = data.runs.some(run => run.steps);
  data.runs.slice(0, sideBySide ? mostNamed : undefined).forEach((run, index) =>
      chosen.runs.add(index));
  if (data.sections.length === 0) return;
  const controls = element("div", { class: "controls" }, axisChoices());
  if (data.sections.some(section => section.figures.some(spec => spec.type === "lines"))) {
    controls.append(...valueChoices());
  }
  if (sideBySide && data.runs.length > 1) controls.append(runChoices());
  place.append(controls);
  for (const section of data.sections) place.append(makeSection(section));
  for (const figure of figures) inSight.observe(figure.node);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    requestAnimationFrame(redrawAll);
  });
  window.addEventListener("beforeprint", () => {
    for (const figure of figures) if (!figure.drawn) draw(figure);
  });
}

makePage();
