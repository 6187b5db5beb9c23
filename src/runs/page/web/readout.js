// Reading values off curves, by pointer or by arrow keys.

function nearest(values, wanted) {
  const after = Math.min(d3.bisectLeft(values, wanted), values.length - 1);
  const before = Math.max(0, after - 1);
  return wanted - values[before] < values[after] - wanted ? before : after;
}

function readWords(curve, i, spec) {
  const unit = spec.unit ? " " + spec.unit : "";
  if (!curve.band || curve.low[i] === curve.high[i]) return numberText(curve.mean[i]) + unit;
  return numberText(curve.mean[i]) + unit + " (" + numberText(curve.low[i]) + " to " +
      numberText(curve.high[i]) + ")";
}

function nameOf(curve, curves, spec) {
  const one = curves.every(other => other.run === curve.run) && data.runs.length === 1;
  const labels = new Set(curves.map(other => other.label)).size > 1;
  return [one ? "" : curve.name, labels || one ? curve.label : ""].filter(Boolean).join(", ") ||
      spec.title;
}

function readByPointer(figure, svg, curves, x, size) {
  const spec = figure.spec;
  const cursor = svg.append("line")
      .attr({ class: "cursor", y1: size.top, y2: size.bottom, visibility: "hidden" });
  // The longest curve is what arrow keys walk along.
  const guide = curves.reduce((best, curve) => curve.x.length > best.x.length ? curve : best);
  let place = -1;

  const show = i => {
    place = Math.max(0, Math.min(guide.x.length - 1, i));
    const at = guide.x[place];
    cursor.attr({ x1: x(at), x2: x(at), visibility: "visible" });
    // A curve that has ended, or not begun, has no value here.
    const there = curves.filter(curve => curve.x[0] <= at && at <= curve.x[curve.x.length - 1]);
    const words = there.slice(0, mostNamed).map(curve => {
      const name = curves.length === 1 ? "" : nameOf(curve, curves, spec);
      return (name ? name + " " : "") + readWords(curve, nearest(curve.x, at), spec);
    });
    if (there.length > mostNamed) words.push(there.length - mostNamed + " more in the table");
    figure.readout.textContent = axisLabel() + " " + numberText(at) + ": " + words.join("; ");
  };

  const node = svg.node();
  node.setAttribute("tabindex", 0);
  svg.on("mousemove", () => show(nearest(guide.x, x.invert(d3.mouse(node)[0]))));
  svg.on("mouseleave", () => {
    cursor.attr("visibility", "hidden");
    figure.readout.textContent = "";
  });
  const far = Math.max(1, Math.round(guide.x.length / 10));
  const moves = {
    ArrowRight: () => place + 1, ArrowLeft: () => place - 1,
    PageUp: () => place + far, PageDown: () => place - far,
    Home: () => 0, End: () => guide.x.length - 1,
  };
  svg.on("keydown", () => {
    const move = moves[d3.event.key];
    if (!move) return;
    d3.event.preventDefault();
    show(move());
  });
}
