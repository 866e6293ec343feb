// Soft areas behind the columns of a group, each with its name: `mixedgm.pictures.network.labels` for the screen.

import { mixed } from "./colours.js";

/** @typedef {import("./camera.js").Point} Point */
/** @typedef {import("./drawing.js").Room} Room */
/** @typedef {import("./drawing.js").Sight} Sight */
/** @typedef {import("./labels.js").Label} Label */
/** @typedef {import("./pen.js").Pen} Pen */

const PAD = 11; // pixels between a node and the border of the area of its group
const TURNS = 24;
const FAR = 3; // times the usual distance of neighbours: farther members have an area of their own

/**
 * Draw the area of every group; nothing where columns are coloured by their kind.
 * @param {Pen} pen
 * @param {Sight} sight
 * @param {Point[]} points
 * @param {Room} room
 */
export function drawAreas(pen, { scene, palette }, points, room) {
  if (!scene.grouped) return;
  pen.lineJoin = pen.lineCap = "round";
  pen.lineWidth = 2 * (room.reach + PAD);
  const far = FAR * usualGap(points);
  scene.graph.groups.forEach((group, k) => {
    const members = membersOf(scene, k);
    pen.strokeStyle = pen.fillStyle = mixed(
      palette.surface,
      group.colour,
      palette.dark ? 0.2 : 0.28,
    );
    const parts = partsOf(members, points, far);
    for (const corners of parts.flatMap((part) => areasOf(part, points))) {
      pen.beginPath();
      pen.moveTo(points[corners[0]].x, points[corners[0]].y);
      for (const at of corners) pen.lineTo(points[at].x, points[at].y);
      pen.closePath();
      pen.fill();
      pen.stroke();
    }
  });
  pen.lineJoin = "miter";
  pen.lineCap = "butt";
}

/**
 * Write the name of every group at the border of its area, where it meets no column and no name.
 * @param {Pen} pen
 * @param {Sight} sight
 * @param {Point[]} points
 * @param {Room} room
 * @param {Label[]} labels names of columns
 */
export function nameAreas(pen, { scene, palette, size }, points, room, labels) {
  if (!scene.grouped) return;
  const taken = room.inside
    ? []
    : labels.map(({ text, x, y }) => ({
        x,
        y,
        half: { x: pen.measureText(text).width / 2, y: 0.6 * room.font },
      }));
  const type = room.font + 1.5;
  pen.font = `bold ${type}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const far = FAR * usualGap(points);
  const parts = scene.graph.groups.map((_, k) => partsOf(membersOf(scene, k), points, far));
  const areas = parts.map((own) =>
    own.flatMap((part) => areasOf(part, points)).map((corners) => corners.map((at) => points[at])),
  );
  scene.graph.groups.forEach((group, k) => {
    const members = parts[k][0] ?? [];
    const others = areas.filter((_, other) => other !== k).flat();
    const half = { x: pen.measureText(group.name).width / 2, y: 0.6 * type };
    const spot =
      members.length > 0 ? freeSpot(members, points, room, half, size, taken, others) : null;
    if (spot === null) return;
    taken.push({ ...spot, half });
    pen.strokeStyle = palette.surface;
    pen.globalAlpha = 0.8;
    pen.lineWidth = 3;
    pen.strokeText(group.name, spot.x, spot.y);
    pen.globalAlpha = 1;
    pen.fillStyle = mixed(group.colour, palette.ink, 0.65);
    pen.fillText(group.name, spot.x, spot.y);
  });
}

/**
 * @param {import("./scene.js").Scene} scene
 * @param {number} group
 */
function membersOf(scene, group) {
  return scene.places.map((_, at) => at).filter((at) => scene.graph.nodes[at].group === group);
}

/**
 * @param {number[]} members
 * @param {Point[]} points
 * @param {Room} room
 * @param {Point} half
 * @param {import("./drawing.js").Size} size
 * @param {{x: number, y: number, half: Point}[]} taken
 * @param {Point[][]} others areas of the other groups
 * @returns {Point | null}
 */
function freeSpot(members, points, room, half, size, taken, others) {
  /** @type {Point | null} */
  let best = null;
  let least = Infinity;
  for (let k = 0; k < TURNS; k++) {
    const turn = (2 * Math.PI * k) / TURNS;
    const [ux, uy] = [Math.sin(turn), -Math.cos(turn)];
    const outer = members.reduce((far, at) =>
      points[at].x * ux + points[at].y * uy > points[far].x * ux + points[far].y * uy ? at : far,
    );
    const reach = room.reach + PAD + half.x * Math.abs(ux) + half.y * Math.abs(uy);
    const spot = {
      x: points[outer].x + ux * reach,
      y: points[outer].y + uy * reach,
    };
    const { x, y } = size.beyond ?? { x: 0, y: 0 };
    const beyond =
      spot.x - half.x < x ||
      spot.x + half.x > size.width - x ||
      spot.y - half.y < y ||
      spot.y + half.y > size.height - y;
    const gaps = points.map((point) =>
      Math.hypot(
        Math.max(Math.abs(point.x - spot.x) - half.x, 0),
        Math.max(Math.abs(point.y - spot.y) - half.y, 0),
      ),
    );
    const gap = Math.min(...gaps);
    // Nearer to its own group than to others, and not in the border of their areas.
    const far = Math.min(...gaps.filter((_, at) => !members.includes(at)), Infinity);
    const ends = [-1, 0, 1].map((side) => ({
      x: spot.x + side * half.x,
      y: spot.y,
    }));
    const foreign =
      far <= gap ||
      far < room.reach + PAD ||
      others.some(
        (corners) => corners.length > 2 && ends.some((point) => isInside(point, corners)),
      );
    const meets = taken.some(
      (other) =>
        Math.abs(other.x - spot.x) < other.half.x + half.x + 2 &&
        Math.abs(other.y - spot.y) < other.half.y + half.y,
    );
    if (beyond || meets || foreign || gap < 1.05 * room.reach + 2) continue;
    const cost = 0.5 * uy - Math.min(gap / (4 * room.reach), 1);
    if (cost < least) [best, least] = [spot, cost];
  }
  return best;
}

/**
 * The members of a group by where they stand together, the largest part first. Members far from the
 * rest are a part of their own, so that no band crosses the picture.
 * @param {number[]} members
 * @param {Point[]} points
 * @param {number} far
 * @returns {number[][]}
 */
function partsOf(members, points, far) {
  /** @type {number[][]} */
  const parts = [];
  const left = new Set(members);
  for (const first of members) {
    if (!left.delete(first)) continue;
    const part = [first];
    for (const at of part) {
      for (const other of left) {
        if (distance(points[at], points[other]) > far) continue;
        left.delete(other);
        part.push(other);
      }
    }
    parts.push(part);
  }
  return parts.sort((one, other) => other.length - one.length);
}

/**
 * Corners of the areas of a part of a group: the convex hull where no other column is inside, else
 * bands between members, each to the nearest that is connected already.
 * @param {number[]} part
 * @param {Point[]} points
 * @returns {number[][]}
 */
function areasOf(part, points) {
  const hull = hullOf(part, points);
  const others = points.filter((_, at) => !part.includes(at));
  const corners = hull.map((at) => points[at]);
  if (hull.length < 3 || !others.some((point) => isInside(point, corners))) return [hull];
  /** @type {number[][]} */
  const bands = [];
  const joined = [part[0]];
  const left = part.slice(1);
  while (left.length > 0) {
    let [from, to, least] = [joined[0], left[0], Infinity];
    for (const one of joined) {
      for (const other of left) {
        const away = distance(points[one], points[other]);
        if (away < least) [from, to, least] = [one, other, away];
      }
    }
    bands.push([from, to]);
    joined.push(to);
    left.splice(left.indexOf(to), 1);
  }
  return bands;
}

/**
 * The median distance of a column from its nearest neighbour.
 * @param {Point[]} points
 */
function usualGap(points) {
  const gaps = points.map((point) =>
    Math.min(...points.map((other) => (other === point ? Infinity : distance(point, other)))),
  );
  return gaps.sort((one, other) => one - other)[Math.floor(gaps.length / 2)];
}

/**
 * @param {Point} one
 * @param {Point} other
 */
function distance(one, other) {
  return Math.hypot(one.x - other.x, one.y - other.y);
}

/**
 * @param {number[]} members
 * @param {Point[]} points
 */
function hullOf(members, points) {
  const order = [...members].sort((a, b) => points[a].x - points[b].x || points[a].y - points[b].y);
  if (order.length < 3) return order;
  /** @param {number[]} indices */
  const chain = (indices) => {
    /** @type {number[]} */
    const kept = [];
    for (const at of indices) {
      while (
        kept.length > 1 &&
        turnOf(points[kept[kept.length - 2]], points[kept[kept.length - 1]], points[at]) <= 0
      )
        kept.pop();
      kept.push(at);
    }
    return kept.slice(0, -1);
  };
  return [...chain(order), ...chain([...order].reverse())];
}

/**
 * @param {Point} a
 * @param {Point} b
 * @param {Point} c
 */
function turnOf(a, b, c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/**
 * @param {Point} point
 * @param {Point[]} corners
 */
function isInside(point, corners) {
  return corners.every((corner, k) => turnOf(corner, corners[(k + 1) % corners.length], point) > 0);
}
