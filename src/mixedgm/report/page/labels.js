// Names inside the nodes or beside them: where they cover least, and none over another.

/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./camera.js").Point} Point */
/** @typedef {import("./drawing.js").Room} Room */
/** @typedef {import("./scene.js").Scene} Scene */

/**
 * @typedef {object} Label
 * @property {number} node
 * @property {string} text
 * @property {number} x
 * @property {number} y
 */

/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */

const GAP = 2.7; // pixels between a node and its name
const FARTHER = 2; // pixels by which a name is nearer to its own node than to any other
const FEW = 80; // columns up to which names avoid lines
const TURNS = 16;

/** Directions in which a name can stand from its node, and what each costs: below is best. */
const SIDES = Array.from({ length: TURNS }, (_, at) => {
  const turn = (2 * Math.PI * at) / TURNS;
  const [x, y] = [Math.cos(turn), Math.sin(turn)].map((value) => Math.round(value * 1e9) / 1e9);
  const cost = y === 1 ? 0 : y === -1 ? 0.1 : x === 1 ? 0.15 : x === -1 ? 0.2 : 0.3;
  return { x, y, cost };
});

/** @type {Map<string, number>} */
const widths = new Map();

/** Sides on which names stand, found once for a layout and a zoom. */
/** @type {{key: string, chosen: {side: number, clear: boolean}[]}} */
const sides = { key: "", chosen: [] };

/**
 * The names that are shown: of few columns all that are clear, of what stands out all.
 * @param {import("./pen.js").Pen} context
 * @param {{scene: Scene, camera: Camera, size: import("./drawing.js").Size}} sight
 * @param {Point[]} points
 * @param {Room} room
 * @param {Set<number> | null} bright
 * @returns {Label[]}
 */
export function placeLabels(context, { scene, camera, size }, points, room, bright) {
  const texts = scene.texts;
  if (room.inside) {
    return points.map(({ x, y }, node) => ({
      node,
      text: texts[node],
      x,
      y: y + 1,
    }));
  }
  const wide = texts.map((text) => textWidth(context, text));
  chooseSides(scene, camera, size, points, wide, room);
  const order = points
    .map((_, at) => at)
    .sort((a, b) => rank(scene, bright, b) - rank(scene, bright, a));
  /** @type {Label[]} */
  const labels = [];
  /** @type {Box[]} */
  const taken = [];
  for (const node of order) {
    const point = points[node];
    if (point.x < -60 || point.x > size.width + 60) continue;
    if (point.y < -40 || point.y > size.height + 40) continue;
    const { side, clear } = sides.chosen[node];
    const box = boxAt(side, point, wide[node], room);
    const needed = isNeeded(scene, node) || bright?.has(node) === true;
    if (!needed && (!clear || taken.some((other) => overlaps(box, other)))) continue;
    taken.push(box);
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    labels.push({ node, text: texts[node], x, y });
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
 * @param {import("./pen.js").Pen} context
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
 * How far a name is from the middle of its node: the mark of a chosen one has room between them.
 * @param {Room} room
 */
function gapOf(room) {
  return Math.max(1.1 * room.radius, room.reach + 1.5) + GAP;
}

/**
 * The box of a name beside its node.
 * @param {number} side
 * @param {Point} point
 * @param {number} width
 * @param {Room} room
 * @returns {Box}
 */
function boxAt(side, point, width, room) {
  const { x, y } = SIDES[side];
  const half = { x: width / 2, y: 0.62 * room.font };
  const away = gapOf(room);
  const reach = Math.min(
    x === 0 ? Infinity : (half.x + away) / Math.abs(x),
    y === 0 ? Infinity : (half.y + away) / Math.abs(y),
  );
  const [cx, cy] = [point.x + x * reach, point.y + y * reach];
  return {
    left: cx - half.x,
    right: cx + half.x,
    top: cy - half.y,
    bottom: cy + half.y,
  };
}

/**
 * Choose sides one node after the other: names touch no node and no other name, are nearer to their
 * own node than to any other, and cross as few lines as can be. The choice stays while one pans.
 * @param {Scene} scene
 * @param {Camera} camera
 * @param {import("./drawing.js").Size} size
 * @param {Point[]} points
 * @param {number[]} wide
 * @param {Room} room
 */
function chooseSides(scene, camera, size, points, wide, room) {
  const places = scene.places.map((p) => `${p.x.toFixed(2)},${p.y.toFixed(2)}`).join(";");
  const key = `${camera.scale.toFixed(1)}|${scene.version}|${places}`;
  if (sides.key === key) return;
  sides.key = key;
  /** @type {Box[]} */
  const taken = [];
  const lines = points.length <= FEW ? scene.links : [];
  const middle = {
    x: points.reduce((sum, point) => sum + point.x, 0) / points.length,
    y: points.reduce((sum, point) => sum + point.y, 0) / points.length,
  };
  const far = Math.max(...points.map((p) => Math.hypot(p.x - middle.x, p.y - middle.y)), 1);
  const order = points
    .map((_, at) => at)
    .sort((a, b) => (scene.around?.[b].length ?? 0) - (scene.around?.[a].length ?? 0));
  const whole = camera.zoom <= 1;
  for (const at of order) {
    const point = points[at];
    const beyond = 2.5 * gapOf(room) + FARTHER; // no side of the name comes near what is farther
    const reach = { x: wide[at] + beyond, y: 1.24 * room.font + beyond };
    const around = {
      left: point.x - reach.x,
      right: point.x + reach.x,
      top: point.y - reach.y,
      bottom: point.y + reach.y,
    };
    const names = taken.filter((box) => overlaps(box, around));
    const others = points.filter((p, node) => node !== at && distanceToBox(p, around) === 0);
    let [best, least, faults] = [0, Infinity, 0];
    SIDES.forEach((side, k) => {
      const box = boxAt(k, point, wide[at], room);
      let wrong = whole && !isInside(box, size) ? 1 : 0;
      for (const other of names) if (overlaps(box, other)) wrong += 1;
      const own = distanceToBox(point, box) + FARTHER;
      for (const other of others) if (distanceToBox(other, box) < own) wrong += 2;
      const outward = (side.x * (point.x - middle.x) + side.y * (point.y - middle.y)) / far;
      let cost = 100 * wrong + side.cost - 0.4 * outward;
      if (cost >= least) return;
      for (const link of lines) {
        if (crosses(points[link.a], points[link.b], box))
          cost += scene.scale.opacity(link.strength);
      }
      if (cost < least) [best, least, faults] = [k, cost, wrong];
    });
    sides.chosen[at] = { side: best, clear: faults === 0 };
    if (faults === 0) taken.push(boxAt(best, point, wide[at], room));
  }
}

/**
 * @param {Box} box
 * @param {import("./drawing.js").Size} size
 */
function isInside(box, size) {
  const { x, y } = size.beyond ?? { x: 0, y: 0 };
  return (
    box.left > x + 2 &&
    box.right < size.width - x - 2 &&
    box.top > y + 2 &&
    box.bottom < size.height - y - 2
  );
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
