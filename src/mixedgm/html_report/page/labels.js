// Names beside the nodes: where they cover least, and none over another.

import { shortName } from "./numbers.js";

/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./camera.js").Point} Point */
/** @typedef {import("./scene.js").Scene} Scene */

/**
 * @typedef {object} Label
 * @property {number} node
 * @property {string} text
 * @property {number} x
 * @property {number} y
 * @property {CanvasTextAlign} align
 */

/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */

const LONGEST = 22;
const LINE = 15;
const FEW = 80;

/** @type {Map<string, number>} */
const widths = new Map();

/** Sides on which the names of few columns stand, found once for a layout and a zoom. */
/** @type {{key: string, chosen: number[]}} */
const sides = { key: "", chosen: [] };

/**
 * Labels that do not overlap: first of what stands out, then of columns with many edges.
 * @param {CanvasRenderingContext2D} context
 * @param {{scene: Scene, camera: Camera, size: {width: number, height: number}}} sight
 * @param {Point[]} points
 * @param {number} radius
 * @param {Set<number> | null} bright
 * @returns {Label[]}
 */
export function placeLabels(context, { scene, camera, size }, points, radius, bright) {
  const texts = scene.graph.nodes.map((node) => shortName(node.name, LONGEST));
  const wide = texts.map((text) => textWidth(context, text));
  const gap = radius * 1.35 + 7;
  const few = points.length <= FEW;
  if (few) chooseSides(scene, camera, points, wide, gap);
  const order = points
    .map((_, at) => at)
    .sort((a, b) => rank(scene, bright, b) - rank(scene, bright, a));
  /** @type {Label[]} */
  const labels = [];
  /** @type {Box[]} */
  const taken = [];
  for (const at of order) {
    const point = points[at];
    if (point.x < -60 || point.x > size.width + 60) continue;
    if (point.y < -40 || point.y > size.height + 40) continue;
    const { label, box } = candidate(
      few ? sides.chosen[at] : 0,
      at,
      texts[at],
      point,
      wide[at],
      gap,
    );
    const needed = isNeeded(scene, at) || few;
    if (!needed && taken.some((other) => overlaps(box, other))) continue;
    if (!few && !needed && hitsNode(box, points, at, radius)) continue;
    taken.push(box);
    labels.push(label);
  }
  return labels;
}

/**
 * @param {Scene} scene
 * @param {number} at
 */
function isNeeded(scene, at) {
  if (scene.cursor === at || scene.found.has(at)) return true;
  const focus = scene.focus;
  return focus !== null && ("node" in focus ? focus.node === at : focus.a === at || focus.b === at);
}

/**
 * @param {Scene} scene
 * @param {Set<number> | null} bright
 * @param {number} at
 */
function rank(scene, bright, at) {
  const edges = scene.around?.[at].length ?? 0;
  return edges + (bright?.has(at) ? 1e3 : 0) + (isNeeded(scene, at) ? 1e6 : 0);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 */
function textWidth(context, text) {
  const key = `${context.font}|${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/**
 * A label on one side of its node: 0 below, 1 above, 2 right, 3 left.
 * @param {number} side
 * @param {number} node
 * @param {string} text
 * @param {Point} point
 * @param {number} width
 * @param {number} gap
 * @returns {{label: Label, box: Box}}
 */
function candidate(side, node, text, point, width, gap) {
  const beside = side >= 2;
  const x = side === 2 ? point.x + gap : side === 3 ? point.x - gap : point.x;
  const y = side === 0 ? point.y + gap + LINE / 2 : side === 1 ? point.y - gap - LINE / 2 : point.y;
  const left = side === 2 ? x : side === 3 ? x - width : x - width / 2;
  /** @type {CanvasTextAlign} */
  const align = beside ? (side === 2 ? "left" : "right") : "center";
  const box = {
    left,
    right: left + width,
    top: y - LINE / 2,
    bottom: y + LINE / 2,
  };
  return { label: { node, text, x, y, align }, box };
}

/**
 * Choose sides one node after the other, where labels cover as few lines, nodes and labels as can
 * be; the choice stays while one pans.
 * @param {Scene} scene
 * @param {Camera} camera
 * @param {Point[]} points
 * @param {number[]} wide
 * @param {number} gap
 */
function chooseSides(scene, camera, points, wide, gap) {
  const places = scene.places.map((p) => `${p.x.toFixed(2)},${p.y.toFixed(2)}`).join(";");
  const key = `${camera.scale.toFixed(1)}|${scene.links.length}|${scene.widest}|${places}`;
  if (sides.key === key) return;
  sides.key = key;
  /** @type {Box[]} */
  const taken = [];
  sides.chosen = points.map((point, at) => {
    let best = 0;
    let least = Infinity;
    for (let side = 0; side < 4; side++) {
      const { box } = candidate(side, at, "", point, wide[at], gap);
      let cost = side * 0.3;
      for (const other of taken) if (overlaps(box, other)) cost += 6;
      points.forEach((other, node) => {
        if (node !== at && distanceToBox(other, box) < gap - 2) cost += 5;
      });
      for (const link of scene.links) {
        if (crosses(points[link.a], points[link.b], box)) cost += 1;
      }
      if (cost < least) [best, least] = [side, cost];
    }
    taken.push(candidate(best, at, "", point, wide[at], gap).box);
    return best;
  });
}

/**
 * @param {Box} one
 * @param {Box} other
 */
function overlaps(one, other) {
  return (
    one.left < other.right + 2 &&
    other.left < one.right + 2 &&
    one.top < other.bottom &&
    other.top < one.bottom
  );
}

/**
 * @param {Box} box
 * @param {Point[]} points
 * @param {number} own
 * @param {number} radius
 */
function hitsNode(box, points, own, radius) {
  return points.some((point, at) => at !== own && distanceToBox(point, box) < radius);
}

/**
 * @param {Point} point
 * @param {Box} box
 */
function distanceToBox(point, box) {
  const dx = Math.max(box.left - point.x, 0, point.x - box.right);
  const dy = Math.max(box.top - point.y, 0, point.y - box.bottom);
  return Math.hypot(dx, dy);
}

/**
 * Whether a line from one point to another crosses a box.
 * @param {Point} from
 * @param {Point} to
 * @param {Box} box
 */
function crosses(from, to, box) {
  let [enter, leave] = [0, 1];
  const sidesOf = [
    [to.x - from.x, box.left - from.x, box.right - from.x],
    [to.y - from.y, box.top - from.y, box.bottom - from.y],
  ];
  for (const [step, low, high] of sidesOf) {
    if (Math.abs(step) < 1e-9) {
      if (low > 0 || high < 0) return false;
      continue;
    }
    const [one, other] = [low / step, high / step];
    enter = Math.max(enter, Math.min(one, other));
    leave = Math.min(leave, Math.max(one, other));
  }
  return enter < leave;
}
