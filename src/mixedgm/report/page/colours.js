// Colours between two others, and those of columns.

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./theme.js").Palette} Palette */
/** @typedef {import("./types").Column} Column */
/** @typedef {import("./types").Kind} Kind */

/** Share of its colour that the fill of a node has on a dark surface. */
const TINT = 0.38;

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
  return `#${mean.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * Fill and outline of a kind of column.
 * @param {Kind} kind
 * @param {Palette} palette
 */
export function kindColours(kind, palette) {
  return palette.dark
    ? { fill: mixed(palette.surface, kind.line, TINT), line: kind.fill }
    : { fill: kind.fill, line: kind.line };
}

/**
 * Fill and outline of a group of columns.
 * @param {string} colour
 * @param {Palette} palette
 */
export function groupColours(colour, palette) {
  const fill = palette.dark ? mixed(palette.surface, colour, TINT) : colour;
  return { fill, line: mixed(fill, palette.ink, 0.6) };
}

/**
 * Fill and outline of a column: those of its group, or else of its kind.
 * @param {Scene} scene
 * @param {Column} node
 * @param {Kind} kind
 * @param {Palette} palette
 */
export function nodeColours(scene, node, kind, palette) {
  const group = scene.grouped ? scene.graph.groups[node.group] : undefined;
  return group ? groupColours(group.colour, palette) : kindColours(kind, palette);
}
