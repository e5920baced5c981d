// Values of the margin's picture, by pointer, touch or keys: one slider, which reads the table.

export function readouts(page) {
  for (const figure of page.querySelectorAll("figure.margin")) {
    if (!figure.dataset.ready) ready(figure);
  }
}

function ready(figure) {
  figure.dataset.ready = "yes";
  const rows = [...figure.querySelectorAll("table.looks tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent));
  const slider = figure.querySelector("input[type=range]");
  const output = figure.querySelector("output");
  const charts = [...figure.querySelectorAll("svg.chart")].map((svg) => ({
    svg,
    line: svg.querySelector(".cursor"),
    xs: places(svg),
  }));
  figure.querySelector(".readout").hidden = false;
  const show = (cursor) => {
    const [pulls, radius, ahead] = rows[slider.value];
    const text = `After ${pulls} results: may be off by ${radius}, ahead by ${ahead}`;
    output.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    for (const { line, xs } of charts) {
      line.setAttribute("x1", xs[slider.value]);
      line.setAttribute("x2", xs[slider.value]);
      if (cursor) line.setAttribute("visibility", "visible");
    }
  };
  slider.addEventListener("input", () => show(true));
  for (const { svg, xs } of charts) {
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      let nearest = 0;
      xs.forEach((place, i) => { if (Math.abs(place - x) < Math.abs(xs[nearest] - x)) nearest = i; });
      slider.value = nearest;
      show(true);
    });
  }
  show(false);
}

function places(svg) {
  const path = svg.querySelector(".curve.radius:not(.later)").getAttribute("d");
  return path.slice(1).split("L").map((point) => parseFloat(point));
}
