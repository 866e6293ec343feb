// Edges and columns in words.

import { countText, numberText, percentText, strengthText } from "./numbers.js";

/** @typedef {import("./types").Column} Column */
/** @typedef {import("./types").Content} Content */
/** @typedef {import("./types").Edge} Edge */
/** @typedef {import("./types").Sign} Sign */

/** @type {Record<Sign, string>} */
const SIGNS = { "+": "positive", "-": "negative", "": "without a single sign" };

/** @param {Sign} sign */
export function signWord(sign) {
  return SIGNS[sign];
}

/**
 * An edge in a sentence.
 * @param {Content} content
 * @param {Edge} edge
 */
export function edgeSentence(content, edge) {
  const [a, b] = [edge.a, edge.b].map((at) => content.graph.nodes[at].name);
  if (edge.moderator !== undefined) {
    const by = content.graph.nodes[edge.moderator].name;
    return `How ${a} and ${b} are related varies with ${by} (strength ${strengthText(edge.strength)}).`;
  }
  const related = edge.directed ? `${a} predicts ${b}` : `${a} and ${b} are directly related`;
  const sign =
    edge.sign === ""
      ? "; the relation has no single sign"
      : `; the relation is ${SIGNS[edge.sign]}${signAbout(content, edge)}`;
  const says = edge.says === undefined ? "" : ` In the data's units: ${edge.says}.`;
  return `${related}, given all other columns${sign} (strength ${strengthText(edge.strength)}).${says}`;
}

/**
 * Which level a sign is about: of two levels the second counts as more.
 * @param {Content} content
 * @param {Edge} edge
 */
function signAbout(content, edge) {
  const ends = [edge.a, edge.b].filter((at) => {
    const { kind, values } = content.graph.nodes[at];
    return kind === "categorical" && values === 2;
  });
  const levels = ends.map((at) => content.columnDetails[at].histogram?.names[1]);
  if (levels.length === 0 || levels.some((level) => level === undefined)) return "";
  return ` for ${levels.join(" and ")}`;
}

/**
 * How certain an edge is, in words; what that rests on follows.
 * @param {Edge} edge
 */
export function certaintySentence(edge) {
  if (edge.probability !== undefined) {
    const p = edge.probability;
    const words =
      p >= 0.995
        ? "It is as good as certain that there is an edge"
        : p >= 0.95
          ? "It is very likely that there is an edge"
          : p >= 0.75
            ? "It is likely that there is an edge"
            : "An edge is more likely than none, but this one is uncertain";
    const share = p > 0.999 ? "more than 99.9\u00a0%" : percentText(p);
    return `${words}: by the tests that chose the graph, its probability is ${share}.`;
  }
  if (edge.frequency !== undefined) {
    return `It was found again in ${percentText(edge.frequency)} of the random subsets of the rows.`;
  }
  return "How certain this edge is was not tested when the graph was chosen.";
}

/**
 * A short form for the pointer.
 * @param {Content} content
 * @param {{a: number, b: number, strength: number, sign: Sign, directed?: boolean, varies?: boolean}} link
 */
export function linkHint(content, link) {
  const [a, b] = [link.a, link.b].map((at) => content.graph.nodes[at].name);
  const parts = [`${a} ${link.directed ? "→" : "–"} ${b}`];
  if (link.strength > 0) parts.push(`${SIGNS[link.sign]}, strength ${strengthText(link.strength)}`);
  if (link.varies) parts.push("varies with a moderator");
  return parts.join("\n");
}

/**
 * A column in a sentence.
 * @param {Content} content
 * @param {number} at
 * @param {number} degree
 */
export function columnSentence(content, at, degree) {
  const column = content.graph.nodes[at];
  const levels =
    column.values > 0 && column.kind !== "count"
      ? ` with ${countText(column.values, "level")}`
      : "";
  const role = column.role === "covariate" ? ", a covariate: it predicts and is not predicted" : "";
  return `${capital(column.kind)} column${levels}${role}; ${countText(degree, "edge")}.`;
}

/**
 * How well a column is predicted, in words; empty where that is not known.
 * @param {Column} column
 */
export function predictionSentence(column) {
  const m = column.measures;
  if (column.kind !== "ordinal" && m.r2 !== undefined) {
    const share =
      `The other columns explain ${percentText(m.r2)} of its variance (R²).` + heldOutSentence(m);
    if (m.accuracy === undefined) return share;
    return `${share} Whether it is zero is predicted in ${percentText(m.accuracy)} of the rows.`;
  }
  if (m.accuracy === undefined) {
    return m.deviance_explained === undefined
      ? ""
      : `The other columns explain ${percentText(m.deviance_explained)} of its deviance.`;
  }
  const gain =
    m.normalised_accuracy === undefined
      ? ""
      : ` That is ${percentText(m.normalised_accuracy)} of what there is to gain.${heldOutSentence(m)}`;
  return (
    `The other columns predict its level in ${percentText(m.accuracy)} of the rows; always ` +
    `naming the most frequent level would get ${percentText(m.majority)}.${gain}`
  );
}

/**
 * What is left of a share in rows that had no part in the estimates; empty where not known.
 * @param {Record<string, number>} measures
 */
function heldOutSentence(measures) {
  const share = measures.held_out;
  if (share === undefined) return "";
  if (share <= 0) return " On held-out rows nothing of it is left: the column is unpredictable.";
  return ` On held-out rows it is ${percentText(share)}.`;
}

/**
 * What a chart of predictions shows, in a sentence.
 * @param {Content} content
 * @param {import("./types").Effect} effect
 */
export function effectSentence(content, effect) {
  const source = content.graph.nodes[effect.from].name;
  const target = content.graph.nodes[effect.to].name;
  const rows = content.hasTable ? "averaged over rows of the table" : "at the means of the others";
  const first = effect.values[0];
  const last = effect.values[effect.values.length - 1];
  if (effect.levels.length === 0 && typeof first === "number" && typeof last === "number") {
    const ends = [effect.predicted[0][0], effect.predicted[effect.predicted.length - 1][0]];
    return (
      `Predicted ${target} goes from ${numberText(ends[0])} to ${numberText(ends[1])} as ` +
      `${source} goes from ${numberText(first)} to ${numberText(last)}, ${rows}.`
    );
  }
  const what = effect.levels.length > 0 ? `Predicted shares of ${target}` : `Predicted ${target}`;
  return `${what} at values of ${source}, ${rows}.`;
}

/** @param {string} text */
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
