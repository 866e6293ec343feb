// What is to be drawn: places of columns, the links between them, what is looked at.

import { shortName } from "./numbers.js";
import { Scale } from "./scale.js";

/** @typedef {import("./types").Edge} Edge */
/** @typedef {import("./types").Graph} Graph */
/** @typedef {import("./types").Link} Link */
/** @typedef {import("./types").Selection} Selection */

const LONGEST = 24;

/**
 * The width of a text against the size of its type.
 * @param {string} text
 */
function ems(text) {
  const context = document.createElement("canvas").getContext("2d");
  if (context === null) return 0.6 * text.length;
  context.font = "100px system-ui, sans-serif";
  return context.measureText(text).width / 100;
}

export class Scene {
  /** @param {Graph} graph */
  constructor(graph) {
    this.graph = graph;
    /** Places of the columns, at least 1 apart. */
    this.places = graph.nodes.map(({ x, y }) => ({ x, y }));
    this.scale = new Scale(graph.scale);
    this.texts = graph.nodes.map((node) => shortName(node.name, LONGEST));
    /** The width of the longest name, against the size of its type. */
    this.longest = Math.max(...this.texts.map(ems), 0);
    this.shapes = new Map(graph.kinds.map((kind) => [kind.name, kind]));
    /** @type {Link[]} */
    this.links = [];
    /** @type {Selection} */
    this.selection = null;
    /** @type {Selection} */
    this.hovered = null;
    /** The column that the keyboard is at. */
    this.cursor = -1;
    /** @type {Set<number>} columns that a search finds */
    this.found = new Set();
    this.smallest = 0;
    /** Whether columns have the colours of their groups, rather than those of their kinds. */
    this.grouped = graph.groups.length > 0;
    /** Counts changes of the links. */
    this.version = 0;
    this.showModel();
  }

  /**
   * Stretch the layout a little towards the shape of the room it has; nodes come no nearer.
   * @param {number} wanted width to height
   */
  stretch(wanted) {
    const xs = this.places.map((place) => place.x);
    const ys = this.places.map((place) => place.y);
    const wide = Math.max(...xs) - Math.min(...xs);
    const tall = Math.max(...ys) - Math.min(...ys);
    if (wide === 0 || tall === 0) return;
    const factor = Math.min(Math.max((wanted * tall) / wide, 1 / 1.6), 1.3);
    for (const place of this.places) {
      if (factor > 1) place.x *= factor;
      else place.y /= factor;
    }
  }

  /** Show the edges of the model. */
  showModel() {
    this.setLinks(linksOf(this.graph.edges));
  }

  /** @param {Link[]} links */
  setLinks(links) {
    this.version += 1;
    this.links = links.sort((one, other) => one.strength - other.strength);
    /** @type {Link[][]} */
    this.around = this.places.map(() => []);
    for (const link of this.links) {
      this.around[link.a].push(link);
      this.around[link.b].push(link);
    }
  }

  /** Links that are strong enough to be drawn. */
  get drawn() {
    return this.smallest > 0
      ? this.links.filter((link) => link.strength >= this.smallest)
      : this.links;
  }

  /** How many links are too weak to be drawn. */
  get hidden() {
    return this.links.length - this.drawn.length;
  }

  /**
   * The columns beside this one, and itself.
   * @param {number} node
   * @returns {Set<number>}
   */
  neighbours(node) {
    const beside = new Set([node]);
    for (const link of this.around?.[node] ?? []) beside.add(link.a).add(link.b);
    return beside;
  }

  /**
   * @param {number} a
   * @param {number} b
   * @returns {Link | undefined}
   */
  linkBetween(a, b) {
    return this.around?.[a]?.find((link) => link.a === b || link.b === b);
  }

  /** What stands out now: what the pointer is on, or else what was chosen. */
  get focus() {
    return this.hovered ?? this.selection;
  }
}

/**
 * Edges and their deviations as links: one for each pair of columns.
 * @param {Edge[]} edges
 * @returns {Link[]}
 */
export function linksOf(edges) {
  /** @type {Map<string, Link>} */
  const links = new Map();
  edges.forEach((edge, at) => {
    const key = pairKey(edge.a, edge.b);
    const known = links.get(key);
    if (edge.moderator !== undefined) {
      if (known) known.varies = true;
      else
        links.set(key, {
          ...ends(edge),
          strength: 0,
          sign: "",
          directed: false,
          varies: true,
          ridge: false,
          bend: edge.bend ?? 0,
          edge: -1,
        });
      return;
    }
    links.set(key, {
      ...ends(edge),
      strength: edge.strength,
      sign: edge.sign,
      directed: edge.directed === true,
      varies: known?.varies ?? false,
      ridge: edge.ridge === true,
      bend: edge.bend ?? 0,
      edge: at,
    });
  });
  return [...links.values()];
}

/** @param {{a: number, b: number}} edge */
function ends(edge) {
  return { a: edge.a, b: edge.b };
}

/**
 * @param {number} a
 * @param {number} b
 */
export function pairKey(a, b) {
  return a < b ? `${a} ${b}` : `${b} ${a}`;
}
