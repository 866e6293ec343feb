// What is to be drawn: places of columns, the links between them, what is looked at.

/** @typedef {import("./types").Edge} Edge */
/** @typedef {import("./types").Graph} Graph */
/** @typedef {import("./types").Link} Link */
/** @typedef {import("./types").Selection} Selection */

export class Scene {
  /** @param {Graph} graph */
  constructor(graph) {
    this.graph = graph;
    /** Places of the columns, in a world that has about one column per unit of area. */
    const spread = Math.sqrt(graph.nodes.length) + 1;
    this.places = graph.nodes.map((node) => ({
      x: node.x * spread,
      y: node.y * spread,
    }));
    this.shapes = new Map(graph.kinds.map((kind) => [kind.name, kind]));
    /** @type {Link[]} */
    this.links = [];
    this.widest = graph.widest;
    /** @type {Selection} */
    this.selection = null;
    /** @type {Selection} */
    this.hovered = null;
    /** The column that the keyboard is at. */
    this.cursor = -1;
    /** @type {Set<number>} columns that a search finds */
    this.found = new Set();
    this.smallest = 0;
    /** Counts changes of the links. */
    this.version = 0;
    this.showModel();
  }

  /**
   * Stretch the layout a little towards the shape of the room it has.
   * @param {number} wanted width to height
   */
  stretch(wanted) {
    const xs = this.places.map((place) => place.x);
    const ys = this.places.map((place) => place.y);
    const wide = Math.max(...xs) - Math.min(...xs);
    const tall = Math.max(...ys) - Math.min(...ys);
    if (wide === 0 || tall === 0) return;
    const factor = Math.min(Math.max((wanted * tall) / wide, 1 / 1.4), 1.4);
    for (const place of this.places) place.x *= factor;
  }

  /** Show the edges of the model. */
  showModel() {
    this.widest = this.graph.widest;
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
