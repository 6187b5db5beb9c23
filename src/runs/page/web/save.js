// A chart as a file of its own, for a paper: SVG, in which text is text.

const looks = {
  fill: "rgb(0, 0, 0)", "fill-opacity": "1", stroke: "none", "stroke-width": "1px", "stroke-opacity": "1",
  "stroke-dasharray": "none", "font-family": "", "font-size": "", "font-weight": "400",
};

// As it is drawn on white paper, whatever the screen's colours are. Style sheets are left behind: what they say
// becomes attributes.
function svgText(figure) {
  const svg = figure.chart.firstChild.cloneNode(true);
  const paper = element("div", { class: "paper unseen" }, svg);
  document.body.append(paper);
  svg.querySelectorAll(".cursor").forEach(node => node.remove());
  const nodes = [...svg.querySelectorAll("path, line, rect, circle, text")];
  for (const node of nodes) {
    const style = getComputedStyle(node);
    for (const [name, usual] of Object.entries(looks)) {
      if (name.startsWith("font") && node.tagName !== "text") continue;
      const value = style.getPropertyValue(name);
      if (value !== usual) node.setAttribute(name, value);
      else node.removeAttribute(name);
    }
  }
  for (const name of ["class", "style"]) {
    svg.querySelectorAll("[" + name + "]").forEach(node => node.removeAttribute(name));
  }
  for (const name of ["tabindex", "role", "aria-label"]) svg.removeAttribute(name);
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  paper.remove();
  return new XMLSerializer().serializeToString(svg);
}

function saveChart(figure) {
  if (!figure.drawn) draw(figure);
  const file = new Blob([svgText(figure)], { type: "image/svg+xml" });
  const link = element("a", {
    href: URL.createObjectURL(file),
    download: titleOf(figure.spec).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") + ".svg",
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
