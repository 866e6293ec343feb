// The part of the address after #: it names an edge or a column, so that both can be linked to.

/** @typedef {import("./types").Content} Content */
/** @typedef {import("./types").Selection} Selection */

/**
 * The part of the address that names a choice.
 * @param {Content} content
 * @param {NonNullable<Selection>} selection
 */
export function hashOf(content, selection) {
  const { nodes } = content.graph;
  const named = new URLSearchParams(
    "node" in selection
      ? { column: nodes[selection.node].name }
      : { edge: nodes[selection.a].name, with: nodes[selection.b].name },
  );
  return `#${named}`;
}

/**
 * What the address names; null where that is nothing in this report.
 * @param {Content} content
 * @param {string} hash
 * @returns {Selection}
 */
export function selectionOf(content, hash) {
  const named = new URLSearchParams(hash.slice(1));
  /** @param {string} key */
  const at = (key) => content.graph.nodes.findIndex((node) => node.name === named.get(key));
  if (named.has("column") && at("column") >= 0) return { node: at("column") };
  const [a, b] = [at("edge"), at("with")];
  return a >= 0 && b >= 0 && a !== b ? { a, b } : null;
}
