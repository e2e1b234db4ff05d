"use strict";
// Draws the figures of a report. A figure is drawn when it is first shown: a hidden one has no width to fill.
const json = (id) => JSON.parse(document.getElementById(id).textContent);
const plots = json("plots");
const ink = { labelColor: "currentColor", titleColor: "currentColor" };
const config = {
  background: "transparent",
  font: 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif',
  autosize: { type: "fit", contains: "padding", resize: true },
  view: { stroke: "#8886" },
  axis: { ...ink, domainColor: "#888", tickColor: "#888", gridColor: "#8883", titleFontWeight: 500, labelFontSize: 11, titleFontSize: 12 },
  legend: { ...ink, orient: "top", labelFontSize: 12, columns: Math.max(2, Math.floor(document.documentElement.clientWidth / 170)) },
};

// Columns to rows; repeated texts are kept once.
function rows(columns) {
  const names = Object.keys(columns);
  const cells = names.map((name) => {
    const column = columns[name];
    return Array.isArray(column) ? column : column.rows.map((row) => column.texts[row]);
  });
  return (cells[0] ?? []).map((_, i) => Object.fromEntries(names.map((name, j) => [name, cells[j][i]])));
}

function set(object, pointer, value) {
  const keys = pointer.split("/").slice(1);
  const last = keys.pop();
  for (const key of keys) object = object[key] ??= {};
  object[last] = value;
}

async function draw(figure) {
  if (figure.dataset.state) return;
  figure.dataset.state = "drawing";
  const target = figure.querySelector(".plot");
  try {
    const about = JSON.parse(figure.querySelector("script").textContent);
    const spec = structuredClone(plots[about.plot]);
    for (const [pointer, value] of Object.entries(about.set)) set(spec, pointer, value);
    const view = spec.facet ? spec.spec : spec;
    if (view.layer) view.layer = view.layer.filter((layer) => layer !== null);
    // Views side by side have widths of their own: Vega-Lite fits single ones only.
    const autosize = spec.facet ? { type: "pad", contains: "padding" } : config.autosize;
    spec.datasets = Object.fromEntries(Object.entries(about.data).map(([name, columns]) => [name, rows(columns)]));
    // The definitions are interpreted: nothing in a report is evaluated as a script.
    await vegaEmbed(target, spec, {
      ast: true,
      renderer: "svg",
      config: { ...config, autosize },
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: about.plot,
    });
    figure.dataset.state = "drawn";
  } catch (error) {
    figure.dataset.state = "failed";
    target.textContent = `This figure could not be drawn: ${error.message}`;
    target.classList.add("failed");
    console.error(`${figure.id}:`, error);
  }
}

// A run is chosen by the list, or by the address: report.html#run-3.
function choose(id) {
  for (const panel of document.querySelectorAll(".panel")) panel.hidden = panel.id !== id;
  for (const choice of document.querySelectorAll("select.runs")) choice.value = id;
  drawShown();
}

function drawShown() {
  for (const figure of document.querySelectorAll("figure")) {
    if (!figure.closest("[hidden]")) draw(figure);
  }
}

const panels = [...document.querySelectorAll(".panel")].map((panel) => panel.id);
if (panels.length > 0) {
  const asked = () => panels.find((id) => `#${id}` === location.hash);
  choose(asked() ?? panels[0]);
  addEventListener("hashchange", () => asked() && choose(asked()));
  for (const choice of document.querySelectorAll("select.runs")) {
    choice.addEventListener("change", () => choose(choice.value));
  }
} else {
  drawShown();
}
