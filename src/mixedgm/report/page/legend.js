// What shapes, colours and lines mean: only of what is drawn. The same on the page and in pictures.

import { groupColours, kindColours } from "./colours.js";
import { element, svg } from "./dom.js";
import { MOST_DASHED, linkWidth, traceShape } from "./drawing.js";
import { countText, strengthText } from "./numbers.js";
import { SvgPen } from "./pen.js";

/** @typedef {import("./drawing.js").Room} Room */
/** @typedef {import("./pen.js").Pen} Pen */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./theme.js").Palette} Palette */

/**
 * @typedef {object} Key
 * @property {string} label
 * @property {number} wide pixels of its sample
 * @property {(pen: Pen, x: number, y: number) => void} draw the sample, around a height
 * @property {boolean} [joined] whether it stays on the line of the key before
 */

const TALL = 16;

/**
 * The keys of the legend.
 * @param {Scene} scene
 * @param {Palette} palette
 * @param {Room} room
 * @returns {Key[]}
 */
export function legendKeys(scene, palette, room) {
  const { nodes, kinds, groups } = scene.graph;
  const grouped = scene.grouped && nodes.every((node) => node.group >= 0);
  const shapes = kinds.filter((kind) => nodes.some((node) => node.kind === kind.name));
  /** @type {Key[]} */
  const keys = shapes.map((kind) => {
    const { fill, line } = kindColours(kind, palette);
    // Where every column has the colour of its group, only the shape tells the kind.
    return shapeKey(
      kind.name,
      kind,
      grouped ? palette.surface : fill,
      grouped ? palette.muted : line,
    );
  });
  if (scene.grouped) {
    for (const group of groups) {
      const { fill, line } = groupColours(group.colour, palette);
      keys.push(patchKey(group.name, fill, line));
    }
  }
  if (nodes.some((node) => node.role === "covariate")) {
    const text = "covariate: white, predicts only";
    keys.push(shapeKey(text, kinds[0], palette.surface, palette.muted));
  }
  if (nodes.some((node) => node.ring !== null)) {
    keys.push(ringKey("ring: share that the other columns predict", palette));
  }
  return [...keys, ...lineKeys(scene, palette, room)];
}

/**
 * @param {Scene} scene
 * @param {Palette} palette
 * @param {Room} room
 * @returns {Key[]}
 */
function lineKeys(scene, palette, room) {
  const links = scene.drawn;
  const sized = links.filter((link) => link.strength > 0);
  const dashed = scene.links.length <= MOST_DASHED;
  /** @type {Key[]} */
  const keys = [];
  if (sized.some((link) => link.sign === "+")) keys.push(lineKey("positive", palette.positive));
  if (sized.some((link) => link.sign === "-")) {
    keys.push(lineKey("negative", palette.negative, 3, dashed ? [7, 4] : []));
  }
  if (sized.some((link) => link.sign === "")) {
    keys.push(lineKey("no single sign", palette.unsigned));
  }
  if (links.some((link) => link.ridge)) {
    keys.push(lineKey("size not determined", palette.ink, 3, [2.5, 3]));
  }
  if (links.some((link) => link.directed)) keys.push(arrowKey("from a covariate", palette));
  if (links.some((link) => link.varies)) {
    keys.push(lineKey("varies with a moderator", palette.ink, 2, [2, 4]));
  }
  if (sized.length === 0) return keys;
  const { cut, keys: sizes } = scene.graph.scale;
  /**
   * @param {string} text
   * @param {number} size
   */
  const sample = (text, size) => {
    const width = linkWidth(scene, room, size);
    return lineKey(text, palette.ink, width, [], scene.scale.opacity(size));
  };
  for (const [at, size] of sizes.entries()) {
    const text = strengthText(size);
    keys.push({ ...sample(at > 0 ? text : `strength ${text}`, size), joined: at > 0 });
  }
  const faint = sized.filter((link) => scene.scale.recedes(link.strength)).length;
  if (cut !== null && faint > 0) {
    keys.push(sample(`${countText(faint, "edge")} below ${strengthText(cut)}`, 0.8 * cut));
  }
  if (scene.hidden > 0) {
    const text = `${countText(scene.hidden, "weaker edge")} not drawn`;
    keys.push({ label: text, wide: 0, draw: () => {} });
  }
  return keys;
}

/**
 * Fill the legend anew.
 * @param {HTMLElement} place
 * @param {Key[]} keys
 */
export function showLegend(place, keys) {
  /** @type {Element[]} */
  const items = [];
  for (const key of keys) {
    const size = { width: key.wide, height: TALL, "aria-hidden": "true" };
    const sample = svg("svg", size);
    key.draw(new SvgPen(sample), 0, TALL / 2);
    if (!key.joined) items.push(element("li", {}));
    if (key.wide > 0) items[items.length - 1].append(sample);
    items[items.length - 1].append(element("span", {}, key.label));
  }
  place.replaceChildren(...items);
}

/**
 * Write the legend below a picture; returns its height, also where nothing is drawn.
 * @param {Pen} pen
 * @param {Key[]} keys
 * @param {{left: number, top: number, width: number}} box
 * @param {Palette} palette
 * @param {boolean} [drawn]
 */
export function drawLegend(pen, keys, box, palette, drawn = true) {
  const row = 22;
  pen.font = "13px system-ui, sans-serif";
  pen.textAlign = "start";
  pen.textBaseline = "middle";
  let [x, y] = [box.left, box.top + row / 2];
  const sizes = keys.map((key) => key.wide + 7 + pen.measureText(key.label).width + 20);
  for (const [at, key] of keys.entries()) {
    let [wide, end] = [sizes[at], at + 1];
    while (keys[end]?.joined) wide += sizes[end++];
    const full = !key.joined && x + wide > box.left + box.width;
    if (x > box.left && full) [x, y] = [box.left, y + row];
    if (drawn) {
      key.draw(pen, x, y);
      pen.globalAlpha = 1;
      pen.setLineDash([]);
      pen.fillStyle = palette.ink;
      pen.fillText(key.label, x + key.wide + (key.wide > 0 ? 7 : 0), y);
    }
    x += sizes[at];
  }
  return y + row / 2 - box.top;
}

/**
 * @param {string} label
 * @param {string} colour
 * @param {number} [width]
 * @param {number[]} [dashes]
 * @param {number} [opacity]
 * @returns {Key}
 */
function lineKey(label, colour, width = 3, dashes = [], opacity = 1) {
  return {
    label,
    wide: 28,
    draw: (pen, x, y) => {
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.globalAlpha = opacity;
      pen.setLineDash(dashes);
      pen.beginPath();
      pen.moveTo(x + 1, y);
      pen.lineTo(x + 27, y);
      pen.stroke();
    },
  };
}

/**
 * @param {string} label
 * @param {Palette} palette
 * @returns {Key}
 */
function arrowKey(label, palette) {
  const line = lineKey(label, palette.ink, 2);
  return {
    ...line,
    draw: (pen, x, y) => {
      line.draw(pen, x - 5, y);
      pen.fillStyle = palette.ink;
      pen.beginPath();
      pen.moveTo(x + 28, y);
      pen.lineTo(x + 18, y - 4.5);
      pen.lineTo(x + 18, y + 4.5);
      pen.closePath();
      pen.fill();
    },
  };
}

/**
 * @param {string} label
 * @param {import("./types").Kind} kind
 * @param {string} fill
 * @param {string} line
 * @returns {Key}
 */
function shapeKey(label, kind, fill, line) {
  return {
    label,
    wide: 16,
    draw: (pen, x, y) => {
      traceShape(pen, kind, x + 8, y, 6.2);
      pen.globalAlpha = 1;
      pen.fillStyle = fill;
      pen.fill();
      pen.setLineDash([]);
      pen.strokeStyle = line;
      pen.lineWidth = 1.4;
      pen.stroke();
    },
  };
}

/**
 * @param {string} label
 * @param {string} fill
 * @param {string} line
 * @returns {Key}
 */
function patchKey(label, fill, line) {
  return {
    label,
    wide: 22,
    draw: (pen, x, y) => {
      pen.beginPath();
      pen.moveTo(x + 1, y - 5);
      pen.lineTo(x + 21, y - 5);
      pen.lineTo(x + 21, y + 5);
      pen.lineTo(x + 1, y + 5);
      pen.closePath();
      pen.fillStyle = fill;
      pen.fill();
      pen.strokeStyle = line;
      pen.lineWidth = 1;
      pen.stroke();
    },
  };
}

/**
 * @param {string} label
 * @param {Palette} palette
 * @returns {Key}
 */
function ringKey(label, palette) {
  return {
    label,
    wide: 16,
    draw: (pen, x, y) => {
      pen.lineWidth = 3;
      for (const [colour, end] of /** @type {[string, number][]} */ ([
        [palette.track, 1.5],
        [palette.ring, 0.5],
      ])) {
        pen.strokeStyle = colour;
        pen.beginPath();
        pen.arc(x + 8, y, 5.5, -Math.PI / 2, end * Math.PI);
        pen.stroke();
      }
    },
  };
}
