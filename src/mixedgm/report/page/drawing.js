// A scene on a canvas. Lines of the same look are drawn in one go, so that thousands stay fast.

import { drawAreas, nameAreas } from "./areas.js";
import { nodeColours } from "./colours.js";
import { placeLabels } from "./labels.js";

/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./camera.js").Point} Point */
/** @typedef {import("./pen.js").Pen} Pen */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./theme.js").Palette} Palette */
/** @typedef {import("./types").Kind} Kind */
/** @typedef {import("./types").Link} Link */

const FAINT = 0.06;
const POINT = 4 / 3; // pixels
const RING = 1.3; // radius of the ring around a node, against that of the node
const INSIDE = 0.6; // diameter of a node where nodes are at least 1 apart
const BESIDE = 0.36;
const LARGEST = 0.72; // the same where there are few columns, so that longer names stand inside
const WIDEST = 96; // pixels: larger nodes hide the lines between few columns
const FEW = 15;
const MOST_INSIDE = 60; // columns; circles of more are too small to read names in
const FILLED = 0.72; // share of the diameter that a name may fill; squares are narrower
const INNER = 0.92; // diameter of a node with a ring, against one without
const SMALLEST = 11.5; // pixels of type

/**
 * @typedef {object} Room
 * @property {number} radius of a node in pixels
 * @property {number} font
 * @property {boolean} inside whether names stand inside their nodes
 * @property {number} widest line in points
 * @property {number} reach radius of a node with its ring
 */

/**
 * How large nodes and names are: `mixedgm.pictures.network.sizes.Room` for the screen. Names stand inside where
 * all of them fit there.
 * @param {Scene} scene
 * @param {Camera} camera
 * @returns {Room}
 */
export function roomOf(scene, camera) {
  const unit = camera.scale;
  const n = scene.places.length;
  const ringed = scene.graph.nodes.some((node) => node.ring !== null);
  const [shrunk, filled] = ringed ? [0.8, 0.92 * FILLED * INNER] : [1, FILLED];
  const around = ringed ? 1.08 * RING : 1;
  const widest = Math.min(Math.max((0.1 * unit) / POINT, 2), 6.5);
  let across = Math.min(INSIDE * unit * shrunk, 60);
  if (n <= FEW) {
    const needed = ((SMALLEST + 1) * scene.longest) / filled;
    across = Math.min(Math.max(across, needed), LARGEST * unit * shrunk, WIDEST);
  }
  const fitting = (filled * across) / Math.max(scene.longest, 2);
  if (n <= MOST_INSIDE && fitting >= SMALLEST) {
    return {
      radius: across / 2,
      font: Math.min(fitting, 15, 0.4 * across),
      inside: true,
      widest,
      reach: (around * across) / 2,
    };
  }
  const font = Math.min(Math.max(0.17 * unit, 10.5), 13);
  const radius = Math.min(Math.max(BESIDE * unit * shrunk, 6), 34) / 2;
  return { radius, font, inside: false, widest, reach: around * radius };
}

/**
 * The width of a line in pixels.
 * @param {Scene} scene
 * @param {Room} room
 * @param {number} size
 */
export function linkWidth(scene, room, size) {
  return 0.9 * POINT * scene.scale.width(size, room.widest);
}

/**
 * @typedef {object} Size in pixels
 * @property {number} width
 * @property {number} height
 * @property {number} ratio
 * @property {Point} [beyond] how far the picture reaches beyond the screen on each side
 */

/**
 * @typedef {object} Sight what is looked at, from where
 * @property {Scene} scene
 * @property {Camera} camera
 * @property {Palette} palette
 * @property {Size} size
 */

const AT_ONCE = 150;
/** Links up to which negative ones are dashed; among more, dashes only add noise. */
export const MOST_DASHED = 40;

/**
 * Draw everything.
 * @param {Pen} context
 * @param {Sight} sight
 */
export function draw(context, sight) {
  for (const _ of drawing(context, sight)) continue;
}

/**
 * Draw everything a part at a time, so that the page can go on between parts.
 * @param {Pen} context
 * @param {Sight} sight
 * @param {number} [without] a column whose links are left out
 */
export function* drawing(context, sight, without = -1) {
  const { scene, camera, size } = sight;
  clear(context, size);
  const points = scene.places.map((place) => camera.toScreen(place));
  const room = roomOf(scene, camera);
  const bright = standsOut(scene);
  const links = scene.drawn.filter((link) => link.a !== without && link.b !== without);
  drawAreas(context, sight, points, room);
  for (let at = 0; at < links.length; at += AT_ONCE) {
    drawLinks(context, sight, links.slice(at, at + AT_ONCE), points, room, bright.links);
    yield;
  }
  const every = points.map((_, at) => at);
  for (let at = 0; at < every.length; at += AT_ONCE) {
    drawNodes(context, sight, every.slice(at, at + AT_ONCE), points, room, bright.nodes);
    yield;
  }
  const labels = drawLabels(context, sight, points, room, bright.nodes);
  nameAreas(context, sight, points, room, labels);
}

/**
 * Draw what stands out, and nothing else.
 * @param {Pen} context
 * @param {Sight} sight
 * @param {number} moving a column that is being dragged, or -1
 */
export function drawBright(context, sight, moving) {
  const { scene, camera } = sight;
  const points = scene.places.map((place) => camera.toScreen(place));
  const room = roomOf(scene, camera);
  const bright = standsOut(scene);
  const nodes = moving >= 0 ? scene.neighbours(moving) : bright.nodes;
  const links = scene.drawn.filter((link) =>
    moving >= 0 ? link.a === moving || link.b === moving : bright.links?.(link),
  );
  drawLinks(context, sight, links, points, room, moving >= 0 ? null : bright.links);
  if (nodes === null) return;
  drawNodes(context, sight, [...nodes], points, room, nodes);
  drawLabels(context, sight, points, room, nodes, nodes);
}

/**
 * @param {Pen} context
 * @param {{width: number, height: number, ratio: number}} size
 */
export function clear(context, size) {
  context.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
}

/**
 * The columns and links that are not faded; null: all of them.
 * @param {Scene} scene
 * @returns {{nodes: Set<number> | null, links: ((link: Link) => boolean) | null}}
 */
function standsOut(scene) {
  const focus = scene.focus;
  if (focus === null) {
    return scene.found.size > 0
      ? {
          nodes: scene.found,
          links: (link) => scene.found.has(link.a) || scene.found.has(link.b),
        }
      : { nodes: null, links: null };
  }
  if ("node" in focus) {
    const at = focus.node;
    return {
      nodes: scene.neighbours(at),
      links: (link) => link.a === at || link.b === at,
    };
  }
  const pair = new Set([focus.a, focus.b]);
  return { nodes: pair, links: (link) => pair.has(link.a) && pair.has(link.b) };
}

/**
 * One line after the other: many lines in one path take software renderers far longer.
 * @param {Pen} context
 * @param {Sight} sight
 * @param {Link[]} links
 * @param {Point[]} points
 * @param {Room} room
 * @param {((link: Link) => boolean) | null} bright
 */
function drawLinks(context, { scene, palette }, links, points, room, bright) {
  context.lineCap = "butt";
  const dashed = scene.links.length <= MOST_DASHED;
  for (const link of links) {
    const width = linkWidth(scene, room, link.strength);
    const opacity = scene.scale.opacity(link.strength);
    const faded = bright !== null && !bright(link);
    context.globalAlpha = faded ? FAINT : bright === null ? opacity : Math.max(opacity, 0.8);
    context.lineWidth = width;
    context.strokeStyle =
      link.strength === 0
        ? palette.ink
        : link.sign === "+"
          ? palette.positive
          : link.sign === "-"
            ? palette.negative
            : palette.unsigned;
    context.setLineDash(dashes(link, width, dashed));
    const [from, to] = [points[link.a], points[link.b]];
    const by = control(from, to, link.bend);
    traceLine(context, from, by, to);
    if (link.directed) {
      context.fillStyle = context.strokeStyle;
      drawArrow(context, link.bend === 0 ? from : by, to, room.radius, width);
    }
    if (link.varies && link.strength > 0 && !faded) {
      context.strokeStyle = palette.ink;
      context.globalAlpha = 1;
      context.lineWidth = Math.max(1.6, 0.6 * width);
      context.setLineDash([2, 4]);
      traceLine(context, from, by, to);
    }
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/**
 * The point that a bent line is drawn towards from both ends; the middle of a straight one.
 * @param {Point} from
 * @param {Point} to
 * @param {number} bend
 * @returns {Point}
 */
export function control(from, to, bend) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  // The page counts y downwards, the layout upwards.
  return {
    x: (from.x + to.x) / 2 + 2 * bend * dy,
    y: (from.y + to.y) / 2 - 2 * bend * dx,
  };
}

/**
 * @param {Pen} context
 * @param {Point} from
 * @param {Point} by
 * @param {Point} to
 */
function traceLine(context, from, by, to) {
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.quadraticCurveTo(by.x, by.y, to.x, to.y);
  context.stroke();
}

/**
 * @param {Link} link
 * @param {number} width
 * @param {boolean} dashed whether negative links are dashed
 * @returns {number[]}
 */
function dashes(link, width, dashed) {
  if (link.strength === 0) return [2, 4];
  if (link.ridge) return [0.7 * width + 0.5, 0.9 * width + 0.5];
  return dashed && link.sign === "-" ? [4 * width, 1.6 * width + 1] : [];
}

/**
 * An arrow head where a line reaches its target.
 * @param {Pen} context
 * @param {Point} from
 * @param {Point} to
 * @param {number} radius
 * @param {number} width
 */
function drawArrow(context, from, to, radius, width) {
  const angle = Math.atan2(to.y - from.y, to.x - from.x);
  const gap = radius * RING;
  const long = 7 + 1.4 * width;
  const tip = {
    x: to.x - gap * Math.cos(angle),
    y: to.y - gap * Math.sin(angle),
  };
  context.beginPath();
  context.moveTo(tip.x, tip.y);
  for (const turn of [-0.42, 0.42]) {
    context.lineTo(tip.x - long * Math.cos(angle + turn), tip.y - long * Math.sin(angle + turn));
  }
  context.closePath();
  context.fill();
}

/**
 * @param {Pen} context
 * @param {Sight} sight
 * @param {number[]} nodes
 * @param {Point[]} points
 * @param {Room} room
 * @param {Set<number> | null} bright
 */
function drawNodes(context, { scene, palette }, nodes, points, room, bright) {
  const { radius } = room;
  const selected = scene.selection;
  for (const at of nodes) {
    const node = scene.graph.nodes[at];
    const kind = scene.shapes.get(node.kind);
    if (kind === undefined) continue;
    const faded = bright !== null && !bright.has(at);
    const { x, y } = points[at];
    context.globalAlpha = 1;
    context.fillStyle = palette.surface;
    if (node.ring === null) traceShape(context, kind, x, y, radius);
    else {
      context.beginPath();
      context.arc(x, y, radius * RING, 0, 2 * Math.PI);
    }
    context.fill();
    traceShape(context, kind, x, y, radius * (node.ring === null ? 1 : INNER));
    context.globalAlpha = faded ? 0.3 : 1;
    const { fill, line } = nodeColours(scene, node, kind, palette);
    if (node.role !== "covariate") {
      context.fillStyle = fill;
      context.fill();
    }
    context.strokeStyle = line;
    context.lineWidth = radius < 8 ? 1 : 1.6;
    context.stroke();
    if (node.ring !== null) drawRing(context, node.ring, x, y, radius, palette);
    const chosen =
      selected !== null &&
      ("node" in selected ? selected.node === at : selected.a === at || selected.b === at);
    if (chosen || scene.cursor === at || scene.found.has(at)) {
      context.globalAlpha = 1;
      context.beginPath();
      context.arc(x, y, room.reach + 2.5, 0, 2 * Math.PI);
      context.strokeStyle = scene.cursor === at ? palette.ink : palette.accent;
      context.lineWidth = 2;
      context.setLineDash(chosen ? [] : [4, 3]);
      context.stroke();
      context.setLineDash([]);
    }
  }
  context.globalAlpha = 1;
}

/**
 * A ring around a node, filled clockwise from the top to the share that is predicted.
 * @param {Pen} context
 * @param {number} share
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 * @param {Palette} palette
 */
function drawRing(context, share, x, y, radius, palette) {
  const around = radius * RING;
  context.lineWidth = Math.max(1.8, radius * 0.16);
  context.strokeStyle = palette.track;
  context.beginPath();
  context.arc(x, y, around, 0, 2 * Math.PI);
  context.stroke();
  if (share <= 0) return;
  context.strokeStyle = palette.ring;
  context.beginPath();
  context.arc(x, y, around, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * Math.min(share, 1));
  context.stroke();
}

/**
 * The outline of a kind of column.
 * @param {Pen} context
 * @param {Kind} kind
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 */
export function traceShape(context, kind, x, y, radius) {
  context.beginPath();
  if (kind.shape === "circle") {
    context.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  const corners = { square: 4, diamond: 4, hexagon: 6, pentagon: 5 }[kind.shape];
  const turn = kind.shape === "square" ? Math.PI / 4 : kind.shape === "hexagon" ? Math.PI / 6 : 0;
  const reach = radius * (kind.shape === "square" ? 1.2 : kind.shape === "diamond" ? 1.22 : 1.1);
  for (let k = 0; k < corners; k++) {
    const angle = -Math.PI / 2 + turn + (2 * Math.PI * k) / corners;
    const [px, py] = [x + reach * Math.cos(angle), y + reach * Math.sin(angle)];
    if (k === 0) context.moveTo(px, py);
    else context.lineTo(px, py);
  }
  context.closePath();
}

/**
 * @param {Pen} context
 * @param {Sight} sight
 * @param {Point[]} points
 * @param {Room} room
 * @param {Set<number> | null} bright
 * @param {Set<number> | null} [only]
 */
function drawLabels(context, sight, points, room, bright, only = null) {
  const { palette, scene } = sight;
  context.font = `${room.font}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.textAlign = "center";
  context.lineJoin = "round";
  context.lineWidth = 4;
  context.strokeStyle = palette.surface;
  const labels = placeLabels(context, sight, points, room, bright);
  for (const label of labels) {
    if (only !== null && !only.has(label.node)) continue;
    context.globalAlpha = bright !== null && !bright.has(label.node) ? 0.35 : 1;
    const quiet = !room.inside && scene.around?.[label.node].length === 0;
    context.fillStyle = quiet ? palette.muted : palette.ink;
    if (!room.inside) context.strokeText(label.text, label.x, label.y);
    context.fillText(label.text, label.x, label.y);
  }
  context.globalAlpha = 1;
  return labels;
}
