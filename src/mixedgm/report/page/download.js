// The graph as a picture to keep: SVG with text as text, or PNG, with its legend below.

import { element, svg } from "./dom.js";
import { draw, roomOf } from "./drawing.js";
import { drawLegend, legendKeys } from "./legend.js";
import { SvgPen } from "./pen.js";
import { palette } from "./theme.js";

/** @typedef {import("./graph.js").GraphView} GraphView */
/** @typedef {import("./pen.js").Pen} Pen */

const MARGIN = 16;
const SHARP = 3; // pixels of a PNG for one of the screen

/**
 * What is seen now, without what the pointer or a choice marks, as a file.
 * @param {GraphView} view
 * @param {"svg" | "png"} kind
 * @param {string} title
 */
export async function download(view, kind, title) {
  const blob = kind === "svg" ? svgPicture(view, title) : await pngPicture(view);
  if (blob === null) return;
  const address = URL.createObjectURL(blob);
  const link = element("a", { href: address, download: `graph.${kind}` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/**
 * @param {GraphView} view
 * @param {string} title
 */
export function svgPicture(view, title) {
  const { width, height } = sizeOf(view);
  const root = svg(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
    svg("title", {}, title),
    svg("rect", { width, height, fill: palette().surface }),
  );
  drawPicture(new SvgPen(root), view, 1);
  return new Blob([new XMLSerializer().serializeToString(root)], { type: "image/svg+xml" });
}

/**
 * @param {GraphView} view
 * @returns {Promise<Blob | null>}
 */
export function pngPicture(view) {
  const { width, height } = sizeOf(view);
  const canvas = element("canvas", { width: SHARP * width, height: SHARP * height });
  const pen = canvas.getContext("2d");
  if (pen === null) return Promise.resolve(null);
  drawPicture(pen, view, SHARP);
  pen.globalCompositeOperation = "destination-over";
  pen.fillStyle = palette().surface;
  pen.fillRect(0, 0, width, height);
  return new Promise((done) => canvas.toBlob(done));
}

/** @param {GraphView} view */
function sizeOf(view) {
  const { width, height } = view.size;
  const pen = new SvgPen(svg("svg"));
  const below = drawLegend(pen, keysOf(view), legendBox(view), palette(), false);
  return { width: Math.ceil(width), height: Math.ceil(height + below + MARGIN) };
}

/** @param {GraphView} view */
function keysOf(view) {
  return legendKeys(view.scene, palette(), roomOf(view.scene, view.camera));
}

/** @param {GraphView} view */
function legendBox(view) {
  return { left: MARGIN, top: view.size.height, width: view.size.width - 2 * MARGIN };
}

/**
 * @param {Pen} pen
 * @param {GraphView} view
 * @param {number} ratio
 */
function drawPicture(pen, view, ratio) {
  const calm = Object.assign(Object.create(view.scene), {
    hovered: null,
    selection: null,
    cursor: -1,
    found: new Set(),
  });
  draw(pen, {
    scene: calm,
    camera: view.camera,
    palette: palette(),
    size: { ...view.size, ratio },
  });
  drawLegend(pen, keysOf(view), legendBox(view), palette());
}
