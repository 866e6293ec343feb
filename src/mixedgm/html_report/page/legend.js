// What shapes, colours and lines mean: only of what is drawn.

import { element, svg } from "./dom.js";
import { MOST_DASHED, TINT, mixed } from "./drawing.js";
import { countText, strengthText } from "./numbers.js";
import { palette } from "./theme.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./types").Kind} Kind */

/**
 * Fill the legend anew.
 * @param {HTMLElement} place
 * @param {Scene} scene
 */
export function showLegend(place, scene) {
  const { nodes, kinds } = scene.graph;
  const links = scene.drawn;
  /** @type {[Node, string][]} */
  const keys = kinds
    .filter((kind) => nodes.some((node) => node.kind === kind.name))
    .map((kind) => [nodeKey(kind), kind.name]);
  if (nodes.some((node) => node.role === "covariate")) {
    keys.push([nodeKey(null), "covariate: white, predicts only"]);
  }
  if (nodes.some((node) => node.ring !== null)) {
    const measures = [...new Set(kinds.map((kind) => kind.measure))].join(" or ");
    keys.push([ringKey(), `predicted by the others (${measures})`]);
  }
  const sized = links.filter((link) => link.strength > 0);
  if (sized.some((link) => link.sign === "+")) keys.push([lineKey("positive", 3), "positive"]);
  if (sized.some((link) => link.sign === "-")) {
    keys.push([lineKey("negative", 3, scene.links.length <= MOST_DASHED ? "7 4" : ""), "negative"]);
  }
  if (sized.some((link) => link.sign === "")) {
    keys.push([lineKey("unsigned", 3), "no single sign"]);
  }
  if (links.some((link) => link.ridge)) {
    keys.push([lineKey("plain", 3, "2.5 3"), "size not determined"]);
  }
  if (links.some((link) => link.directed)) keys.push([text("→"), "from a covariate"]);
  if (links.some((link) => link.varies)) {
    keys.push([lineKey("plain", 2, "2 4"), "varies with a moderator"]);
  }
  if (sized.length > 0) {
    const { cut, keys: sizes } = scene.graph.scale;
    for (const size of sizes) {
      const sample = lineKey("plain", 1.2 * scene.scale.width(size));
      sample.style.opacity = String(scene.scale.opacity(size));
      keys.push([sample, `strength ${strengthText(size)}`]);
    }
    const faint = sized.filter((link) => scene.scale.recedes(link.strength)).length;
    if (cut !== null && faint > 0) {
      const sample = lineKey("plain", 1);
      sample.style.opacity = String(scene.scale.opacity(0.8 * cut));
      keys.push([sample, `${countText(faint, "edge")} below ${strengthText(cut)}`]);
    }
  }
  place.replaceChildren(
    ...keys.map(([sample, label]) => element("li", {}, sample, element("span", {}, label))),
  );
}

/** @param {string} sign */
function text(sign) {
  return element("span", { class: "sample", "aria-hidden": "true" }, sign);
}

/**
 * @param {string} look
 * @param {number} width
 * @param {string} [dashes]
 */
function lineKey(look, width, dashes = "") {
  const line = svg("line", {
    x1: 1,
    y1: 7,
    x2: 27,
    y2: 7,
    class: `key-${look}`,
    "stroke-width": width,
    "stroke-dasharray": dashes === "" ? undefined : dashes,
  });
  return svg("svg", { width: 28, height: 14, "aria-hidden": "true" }, line);
}

function ringKey() {
  const around = { cx: 8, cy: 8, r: 5.5, fill: "none", "stroke-width": 3 };
  return svg(
    "svg",
    { width: 16, height: 16, "aria-hidden": "true" },
    svg("circle", { ...around, class: "key-track" }),
    svg("path", {
      d: "M8 2.5 A5.5 5.5 0 0 1 8 13.5",
      fill: "none",
      "stroke-width": 3,
      class: "key-ring",
    }),
  );
}

/** @param {Kind | null} kind */
function nodeKey(kind) {
  const shapes = {
    circle: "M8 1.5 A6.5 6.5 0 1 1 7.99 1.5 Z",
    square: "M2.5 2.5 H13.5 V13.5 H2.5 Z",
    diamond: "M8 1 L15 8 L8 15 L1 8 Z",
    hexagon: "M4.5 2 H11.5 L15 8 L11.5 14 H4.5 L1 8 Z",
    pentagon: "M8 1 L15 6.2 L12.3 14.5 H3.7 L1 6.2 Z",
  };
  const { dark, surface } = palette();
  const fill = kind === null ? surface : dark ? mixed(surface, kind.line, TINT) : kind.fill;
  const line = kind === null ? palette().muted : dark ? kind.fill : kind.line;
  const path = {
    d: shapes[kind?.shape ?? "circle"],
    fill,
    stroke: line,
    "stroke-width": 1.4,
  };
  return svg("svg", { width: 16, height: 16, "aria-hidden": "true" }, svg("path", path));
}
