// A scene on a canvas. Lines of the same look are drawn in one go, so that thousands stay fast.

import { placeLabels } from "./labels.js";

/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./camera.js").Point} Point */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./theme.js").Palette} Palette */
/** @typedef {import("./types").Kind} Kind */
/** @typedef {import("./types").Link} Link */

const THINNEST = 1;
const WIDEST = 8;
const FAINT = 0.1;
const SIDE = 440; // pixels of height or width from which nodes have their full size

/**
 * The radius of a node in pixels: smaller with many columns or on a small screen, and growing a
 * little as one zooms in.
 * @param {Scene} scene
 * @param {Camera} camera
 */
export function nodeRadius(scene, camera) {
  const count = scene.places.length;
  const base = Math.min(Math.max(64 / Math.sqrt(count + 8), 4.5), 17);
  const small = Math.min(Math.max(camera.side / SIDE, 0.65), 1);
  return Math.min(base * small * Math.sqrt(Math.max(camera.zoom, 0.5)), 26);
}

/**
 * The width of a line in pixels.
 * @param {Scene} scene
 * @param {number} strength
 */
export function linkWidth(scene, strength) {
  const many = scene.links.length;
  const most = many > 600 ? 3.5 : many > 150 ? 6 : WIDEST;
  return THINNEST + (most - THINNEST) * Math.min(strength / scene.widest, 1);
}

/**
 * @typedef {object} Sight what is looked at, from where
 * @property {Scene} scene
 * @property {Camera} camera
 * @property {Palette} palette
 * @property {{width: number, height: number, ratio: number}} size
 */

const AT_ONCE = 150;

/**
 * Draw everything.
 * @param {CanvasRenderingContext2D} context
 * @param {Sight} sight
 */
export function draw(context, sight) {
  for (const _ of drawing(context, sight)) continue;
}

/**
 * Draw everything a part at a time, so that the page can go on between parts.
 * @param {CanvasRenderingContext2D} context
 * @param {Sight} sight
 * @param {number} [without] a column whose links are left out
 */
export function* drawing(context, sight, without = -1) {
  const { scene, camera, size } = sight;
  clear(context, size);
  const points = scene.places.map((place) => camera.toScreen(place));
  const radius = nodeRadius(scene, camera);
  const bright = standsOut(scene);
  const links = scene.drawn.filter((link) => link.a !== without && link.b !== without);
  for (let at = 0; at < links.length; at += AT_ONCE) {
    drawLinks(context, sight, links.slice(at, at + AT_ONCE), points, radius, bright.links);
    yield;
  }
  const every = points.map((_, at) => at);
  for (let at = 0; at < every.length; at += AT_ONCE) {
    drawNodes(context, sight, every.slice(at, at + AT_ONCE), points, radius, bright.nodes);
    yield;
  }
  drawLabels(context, sight, points, radius, bright.nodes);
}

/**
 * Draw what stands out, and nothing else.
 * @param {CanvasRenderingContext2D} context
 * @param {Sight} sight
 * @param {number} moving a column that is being dragged, or -1
 */
export function drawBright(context, sight, moving) {
  const { scene, camera } = sight;
  const points = scene.places.map((place) => camera.toScreen(place));
  const radius = nodeRadius(scene, camera);
  const bright = standsOut(scene);
  const nodes = moving >= 0 ? scene.neighbours(moving) : bright.nodes;
  const links = scene.drawn.filter((link) =>
    moving >= 0 ? link.a === moving || link.b === moving : bright.links?.(link),
  );
  drawLinks(context, sight, links, points, radius, moving >= 0 ? null : bright.links);
  if (nodes === null) return;
  drawNodes(context, sight, [...nodes], points, radius, nodes);
  drawLabels(context, sight, points, radius, nodes, nodes);
}

/**
 * @param {CanvasRenderingContext2D} context
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
 * @param {CanvasRenderingContext2D} context
 * @param {Sight} sight
 * @param {Link[]} links
 * @param {Point[]} points
 * @param {number} radius
 * @param {((link: Link) => boolean) | null} bright
 */
function drawLinks(context, { scene, palette }, links, points, radius, bright) {
  context.lineCap = "butt";
  // Of very many lines the light ones are faint, so that the strong ones can be seen.
  const least = scene.links.length > 600 ? 0.25 : 0.6;
  for (const link of links) {
    const width = linkWidth(scene, link.strength);
    const share = Math.min(link.strength / scene.widest, 1);
    const faded = bright !== null && !bright(link);
    context.globalAlpha = faded ? FAINT : bright === null ? least + (0.95 - least) * share : 0.95;
    context.lineWidth = width;
    context.strokeStyle =
      link.sign === "+"
        ? palette.positive
        : link.sign === "-"
          ? palette.negative
          : palette.unsigned;
    context.setLineDash(dashes(link, width));
    const [from, to] = [points[link.a], points[link.b]];
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
    if (link.directed) {
      context.fillStyle = context.strokeStyle;
      drawArrow(context, from, to, radius, width);
    }
    if (link.varies && link.strength > 0 && !faded) drawDots(context, from, to, palette, width);
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/**
 * @param {Link} link
 * @param {number} width
 * @returns {number[]}
 */
function dashes(link, width) {
  if (link.strength === 0) return [2, 5];
  return link.sign === "-" ? [4 + 1.6 * width, 2 + 1.1 * width] : [];
}

/**
 * An arrow head where a line reaches its target.
 * @param {CanvasRenderingContext2D} context
 * @param {Point} from
 * @param {Point} to
 * @param {number} radius
 * @param {number} width
 */
function drawArrow(context, from, to, radius, width) {
  const angle = Math.atan2(to.y - from.y, to.x - from.x);
  const gap = radius * 1.35;
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
 * Dots on the line of an edge that varies with a moderator.
 * @param {CanvasRenderingContext2D} context
 * @param {Point} from
 * @param {Point} to
 * @param {Palette} palette
 * @param {number} width
 */
function drawDots(context, from, to, palette, width) {
  context.save();
  context.strokeStyle = palette.surface;
  context.lineCap = "round";
  context.lineWidth = Math.max(1.6, 0.45 * width);
  context.setLineDash([0, 9]);
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.lineTo(to.x, to.y);
  context.stroke();
  context.restore();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Sight} sight
 * @param {number[]} nodes
 * @param {Point[]} points
 * @param {number} radius
 * @param {Set<number> | null} bright
 */
function drawNodes(context, { scene, palette }, nodes, points, radius, bright) {
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
      context.arc(x, y, radius * 1.35, 0, 2 * Math.PI);
    }
    context.fill();
    traceShape(context, kind, x, y, radius * (node.ring === null ? 1 : 0.92));
    context.globalAlpha = faded ? 0.3 : 1;
    if (node.role !== "covariate") {
      context.fillStyle = palette.dark ? mixed(kind.line, kind.fill, 0.18) : kind.fill;
      context.fill();
    }
    context.strokeStyle = palette.dark ? kind.fill : kind.line;
    context.lineWidth = radius < 8 ? 1 : 1.6;
    context.stroke();
    if (node.ring !== null) drawRing(context, node.ring, x, y, radius, palette);
    const chosen =
      selected !== null &&
      ("node" in selected ? selected.node === at : selected.a === at || selected.b === at);
    if (chosen || scene.cursor === at || scene.found.has(at)) {
      context.globalAlpha = 1;
      context.beginPath();
      context.arc(x, y, radius * 1.35 + 5, 0, 2 * Math.PI);
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
 * @param {CanvasRenderingContext2D} context
 * @param {number} share
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 * @param {Palette} palette
 */
function drawRing(context, share, x, y, radius, palette) {
  const around = radius * 1.35;
  context.lineWidth = Math.max(1.8, radius * 0.22);
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
 * @param {CanvasRenderingContext2D} context
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
 * @param {CanvasRenderingContext2D} context
 * @param {Sight} sight
 * @param {Point[]} points
 * @param {number} radius
 * @param {Set<number> | null} bright
 * @param {Set<number> | null} [only]
 */
function drawLabels(context, sight, points, radius, bright, only = null) {
  const { scene, palette } = sight;
  context.font = `${scene.places.length > 80 ? 11 : 13}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 4;
  context.strokeStyle = palette.surface;
  context.fillStyle = palette.ink;
  for (const label of placeLabels(context, sight, points, radius, bright)) {
    if (only !== null && !only.has(label.node)) continue;
    context.globalAlpha = bright !== null && !bright.has(label.node) ? 0.35 : 1;
    context.textAlign = label.align;
    context.strokeText(label.text, label.x, label.y);
    context.fillText(label.text, label.x, label.y);
  }
  context.globalAlpha = 1;
}

/**
 * A colour between two, both as #rrggbb.
 * @param {string} one
 * @param {string} other
 * @param {number} share of the other
 */
export function mixed(one, other, share) {
  /** @param {string} colour */
  const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const [a, b] = [parts(one), parts(other)];
  const mean = a.map((value, k) => Math.round(value * (1 - share) + b[k] * share));
  return `rgb(${mean.join(",")})`;
}
