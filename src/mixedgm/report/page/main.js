// The page: reads its content, and puts every part into its place.

import { Details } from "./details.js";
import { button, byId, element } from "./dom.js";
import { download } from "./download.js";
import { roomOf } from "./drawing.js";
import { showFindings } from "./findings.js";
import { GraphView } from "./graph.js";
import { legendKeys, showLegend } from "./legend.js";
import { hashOf, selectionOf } from "./links.js";
import { showMethods } from "./methods.js";
import { countText } from "./numbers.js";
import { PathPanel } from "./path.js";
import { startSearch } from "./search.js";
import { showTables } from "./tables.js";
import { onTheme, palette, startThemes } from "./theme.js";
import { showTrust } from "./trust.js";
import { columnSentence, edgeSentence } from "./words.js";

/** @typedef {import("./types").Content} Content */
/** @typedef {import("./types").Selection} Selection */

const FEW = 8; // edges, all of which are always shown

/** @type {Content} */
const content = JSON.parse(byId("content").textContent ?? "");

start();

function start() {
  startThemes(byId("theme"));
  byId("title").textContent = content.title;
  const canvas = byId("graph");
  if (!(canvas instanceof HTMLCanvasElement)) throw new Error("the graph needs a canvas");
  const stage = byId("stage");
  const status = byId("status");
  const view = new GraphView(
    content,
    { stage, canvas, hint: byId("hint"), status },
    (selection) => {
      details.show(selection);
      status.textContent = spoken(selection);
      byId("graph-area").classList.toggle("open", selection !== null);
      remember(selection);
    },
  );
  /** @param {Selection} selection */
  const choose = (selection) => {
    view.select(selection, true);
    const heading = byId("details").querySelector("h3");
    if (heading instanceof HTMLElement) heading.focus({ preventScroll: true });
  };
  /** From a table or a list below the graph: bring the graph into view, too. @param {Selection} selection */
  const jump = (selection) => {
    choose(selection);
    byId("graph-section").scrollIntoView({ block: "start" });
  };
  const details = new Details(content, byId("details"), choose);
  const legend = () => {
    const { scene, camera } = view;
    showLegend(byId("legend"), legendKeys(scene, palette(), roomOf(scene, camera)));
  };
  legend();
  onTheme(legend);
  describe(stage);
  byId("zoom-tools").append(
    button("+", () => view.zoom(1.3), {
      "aria-label": "Zoom in",
      title: "Zoom in (+)",
    }),
    button("−", () => view.zoom(1 / 1.3), {
      "aria-label": "Zoom out",
      title: "Zoom out (−)",
    }),
    button("Fit", () => view.fit(), {
      "aria-label": "Show the whole graph",
      title: "Show the whole graph (0)",
    }),
  );
  byId("save-tools").append(
    .../** @type {const} */ (["svg", "png"]).map((kind) =>
      button(kind.toUpperCase(), () => download(view, kind, content.title), {
        "aria-label": `Download the graph as ${kind.toUpperCase()}`,
        title: `Download the graph as ${kind.toUpperCase()}`,
      }),
    ),
  );
  startColours(view, legend);
  const search = byId("search");
  if (search instanceof HTMLInputElement) startSearch(search, byId("names"), view, status);
  startMinimum(view, legend);
  if (!content.whole) {
    document.documentElement.classList.add("frame");
    for (const part of document.querySelectorAll(".whole")) part.remove();
    return;
  }
  if (content.findings) showFindings(content.findings, byId("findings"));
  showFacts();
  const followLink = () => {
    const linked = selectionOf(content, location.hash);
    if (linked !== null) choose(linked);
  };
  addEventListener("hashchange", followLink);
  followLink();
  if (content.path) {
    new PathPanel(content.path, byId("path"), view, legend);
  } else byId("path-part").remove();
  showTables(content, byId("tables"), jump);
  showTrust(content.trust ?? [], byId("trust"), jump);
  if (content.methods) showMethods(content.methods, byId("methods"));
  byId("version").textContent = content.version;
}

/**
 * Name the choice in the address, so that it can be linked to.
 * @param {Selection} selection
 */
function remember(selection) {
  if (!content.whole) return;
  const hash = selection === null ? location.pathname : hashOf(content, selection);
  history.replaceState(null, "", hash);
}

/**
 * A choice between the colours of kinds and of groups, where there are groups.
 * @param {GraphView} view
 * @param {() => void} legend
 */
function startColours(view, legend) {
  const part = byId("colour-part");
  if (content.graph.groups.length === 0) {
    part.remove();
    return;
  }
  const choice = element(
    "select",
    { id: "colour" },
    element("option", { value: "group" }, "group"),
    element("option", { value: "kind" }, "kind"),
  );
  choice.addEventListener("change", () => {
    view.scene.grouped = choice.value === "group";
    legend();
    view.redraw();
  });
  part.append(element("label", { for: "colour" }, "Colour by"), choice);
}

/**
 * What a screen reader says about the choice.
 * @param {Selection} selection
 */
function spoken(selection) {
  if (selection === null) return "";
  const { edges } = content.graph;
  if ("node" in selection) {
    const at = selection.node;
    const degree = edges.filter(
      (edge) => edge.moderator === undefined && (edge.a === at || edge.b === at),
    ).length;
    return `${content.graph.nodes[at].name}: ${columnSentence(content, at, degree)}`;
  }
  const { a, b } = selection;
  const edge = edges.find(
    (each) => (each.a === a && each.b === b) || (each.a === b && each.b === a),
  );
  return edge ? edgeSentence(content, edge) : "";
}

/** @param {HTMLElement} stage */
function describe(stage) {
  const { nodes, edges } = content.graph;
  const links = edges.filter((edge) => edge.moderator === undefined).length;
  stage.setAttribute(
    "aria-label",
    `Graph of ${countText(nodes.length, "column")} and ${countText(links, "edge")}. ` +
      "Arrow keys go from column to column, Enter opens one, plus and minus zoom, 0 shows all, " +
      "Shift with arrows pans. The tables below hold the same.",
  );
}

/**
 * A slider that hides weak edges, where there are many.
 * @param {GraphView} view
 * @param {() => void} legend
 */
function startMinimum(view, legend) {
  const sizes = content.graph.edges
    .filter((edge) => edge.moderator === undefined)
    .map((edge) => edge.strength);
  const part = byId("minimum-part");
  if (sizes.length < FEW) {
    part.remove();
    return;
  }
  const slider = element("input", {
    type: "range",
    min: 0,
    max: 100,
    value: 0,
    id: "minimum",
  });
  const shown = element("output", { for: "minimum", class: "fine" });
  const ordered = [...sizes].sort((one, other) => one - other);
  const tell = () => {
    const at = Math.min(
      Math.floor((Number(slider.value) / 100) * ordered.length),
      ordered.length - 1,
    );
    view.scene.smallest = Number(slider.value) === 0 ? 0 : ordered[at];
    const kept = Number(slider.value) === 0 ? ordered.length : ordered.length - at;
    shown.textContent = `${kept} of ${ordered.length}`;
    legend();
    view.redraw();
  };
  slider.addEventListener("input", tell);
  part.append(element("label", { for: "minimum" }, "Hide weak edges"), slider, shown);
  tell();
}

function showFacts() {
  const wanted = ["rows", "columns", "edges", "missing", "covariates", "moderated"];
  const facts = (content.facts ?? []).filter(([name]) => wanted.includes(name));
  byId("facts").append(
    ...facts.map(([name, text]) =>
      // How many edges of each kind there are is in the table.
      element(
        "div",
        {},
        element("dt", {}, name),
        element("dd", {}, name === "edges" ? text.split(":")[0] : text),
      ),
    ),
  );
  byId("source").textContent = content.source;
}
