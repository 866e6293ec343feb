// What a click opens: an edge and what it consists of, or a column and its neighbours.

import { hashOf } from "./links.js";
import { effectChart, histogramChart, meter, observedList, parameterTable } from "./charts.js";
import { button, element, named } from "./dom.js";
import { countText, numberText, strengthText } from "./numbers.js";
import {
  certaintySentence,
  columnSentence,
  edgeSentence,
  effectSentence,
  predictionSentence,
  signWord,
} from "./words.js";

/** @typedef {import("./types").Content} Content */
/** @typedef {import("./types").Edge} Edge */
/** @typedef {import("./types").Selection} Selection */
/** @typedef {import("./types").Table} Table */

export class Details {
  /**
   * @param {Content} content
   * @param {HTMLElement} panel
   * @param {(selection: Selection) => void} choose
   */
  constructor(content, panel, choose) {
    this.content = content;
    this.panel = panel;
    this.choose = choose;
    this.show(null);
  }

  /** @param {Selection} selection */
  show(selection) {
    const parts =
      selection === null
        ? this.nothing()
        : "node" in selection
          ? this.column(selection.node)
          : this.pair(selection.a, selection.b);
    this.panel.replaceChildren(...parts.filter((part) => part !== null));
    this.panel.scrollTop = 0;
  }

  /** @returns {(Node | null)[]} */
  nothing() {
    const { nodes, edges } = this.content.graph;
    const strong = edges.filter((edge) => edge.moderator === undefined).slice(0, 8);
    return [
      element("h3", {}, strong.length > 0 ? "Strongest edges" : "No edges"),
      element(
        "p",
        { class: "fine" },
        `${countText(nodes.length, "column")}, ${countText(edges.filter((e) => e.moderator === undefined).length, "edge")}. `,
        "Strengths go from 0 to 1; between two numbers it is the size of their partial correlation. ",
        element(
          "span",
          { class: "screen-only" },
          "Choose a line or a column to see what is behind it.",
        ),
      ),
      strong.length > 0 ? this.edgeList(strong, -1) : null,
    ];
  }

  /**
   * A list of edges, each a button; seen from one column, only the other end is named.
   * @param {Edge[]} edges
   * @param {number} from
   */
  edgeList(edges, from) {
    const { nodes } = this.content.graph;
    const items = edges.map((edge) => {
      const look = edge.sign === "+" ? "positive" : edge.sign === "-" ? "negative" : "unsigned";
      const open = element("button", { type: "button", class: "edge-button" });
      const ends = from < 0 ? [edge.a, edge.b] : [edge.a === from ? edge.b : edge.a];
      const label = element("span", { class: "ends" });
      ends.forEach((at, k) =>
        label.append(...(k > 0 ? [edge.directed ? " → " : " – "] : []), named(nodes[at].name)),
      );
      open.append(
        label,
        element(
          "span",
          { class: "amount" },
          meter(edge.strength, look),
          element("span", { class: "amount-text" }, listed(edge.strength)),
        ),
        element("span", { class: "hidden-text" }, `, ${signWord(edge.sign)}`),
      );
      open.addEventListener("click", () => this.choose({ a: edge.a, b: edge.b }));
      const says =
        from < 0 && edge.says !== undefined && element("p", { class: "says" }, edge.says);
      return element("li", {}, open, says);
    });
    return element("ul", { class: "edge-list" }, ...items);
  }

  /**
   * @param {number} at
   * @returns {(Node | null)[]}
   */
  column(at) {
    const column = this.content.graph.nodes[at];
    const all = this.content.graph.edges;
    const own = all.filter(
      (edge) => edge.moderator === undefined && (edge.a === at || edge.b === at),
    );
    const varied = all.filter((edge) => edge.moderator === at);
    const chart = this.content.columnDetails[at].histogram;
    const predicted = predictionSentence(column);
    return [
      this.heading(named(column.name)),
      element("p", {}, columnSentence(this.content, at, own.length)),
      predicted ? element("p", {}, predicted) : null,
      chart ? element("h4", {}, "Its values") : null,
      chart ? histogramChart(chart, column.name) : null,
      own.length > 0 ? element("h4", {}, "Its neighbours") : null,
      own.length > 0 ? this.edgeList(own, at) : null,
      varied.length > 0 ? element("h4", {}, "Edges that vary with it") : null,
      varied.length > 0 ? this.edgeList(varied, -1) : null,
    ];
  }

  /**
   * @param {number} a
   * @param {number} b
   * @returns {(Node | null)[]}
   */
  pair(a, b) {
    const { nodes, edges } = this.content.graph;
    const places = edges.map((_, at) => at).filter((at) => isPair(edges[at], a, b));
    const title = this.heading(named(nodes[a].name), " – ", named(nodes[b].name));
    const ends = element(
      "p",
      { class: "fine" },
      "Look at ",
      this.link(a),
      " or ",
      this.link(b),
      ". ",
      this.content.whole &&
        element(
          "a",
          { href: hashOf(this.content, { a, b }), class: "to-edge" },
          "Link to this pair",
        ),
    );
    if (places.length === 0) {
      const text =
        "The model has no edge between these two columns: given all others, they are independent.";
      return [title, element("p", {}, text), ...this.evidence(a, b), ends];
    }
    const parts = places.flatMap((at) => this.edge(at));
    return [title, ...parts, ...this.evidence(a, b), ends];
  }

  /** @param {number} at */
  link(at) {
    const open = element(
      "button",
      { type: "button", class: "link" },
      named(this.content.graph.nodes[at].name),
    );
    open.addEventListener("click", () => this.choose({ node: at }));
    return open;
  }

  /**
   * @param {number} at
   * @returns {(Node | null)[]}
   */
  edge(at) {
    const edge = this.content.graph.edges[at];
    const details = this.content.edgeDetails[at];
    const facts = [];
    if (edge.partial !== undefined) facts.push(`Partial correlation ${numberText(edge.partial)}.`);
    if (edge.ridge) {
      facts.push("The data do not determine the size of its parameters; a small ridge was added.");
    }
    /** @type {(Node | null)[]} */
    const parts = [
      element("p", {}, edgeSentence(this.content, edge)),
      edge.moderator === undefined ? element("p", {}, certaintySentence(edge)) : null,
      facts.length > 0 ? element("p", { class: "fine" }, facts.join(" ")) : null,
    ];
    if (details === null) {
      const text =
        "Its parameters are left out to keep this file small; model.interaction has them.";
      return [...parts, element("p", { class: "fine" }, text)];
    }
    for (const effect of details.effects ?? []) {
      const [source, target] = [effect.from, effect.to].map(
        (k) => this.content.graph.nodes[k].name,
      );
      parts.push(
        element("h4", {}, named(target), " as ", named(source), " varies"),
        effectChart(effect, source, target),
        element("p", { class: "fine" }, effectSentence(this.content, effect)),
        observedList(effect, source),
      );
    }
    const parameters = details.parameters;
    const behind = parameters.behind.length > 0;
    const single = parameters.rows.length === 1 && parameters.columns.length === 1;
    parts.push(
      element("h4", {}, edge.moderator === undefined ? "Parameters" : "How the parameters deviate"),
      parameterTable(parameters),
      element("p", { class: "fine" }, parameterNote(single, parameters.hidden, behind)),
    );
    return parts;
  }

  /**
   * What tests, intervals and groups say about a pair.
   * @param {number} a
   * @param {number} b
   * @returns {Node[]}
   */
  evidence(a, b) {
    return (this.content.tables ?? [])
      .filter((table) => ["tests", "intervals", "selection", "differences"].includes(table.key))
      .flatMap((table) => this.rowsAbout(table, a, b));
  }

  /**
   * @param {Table} table
   * @param {number} a
   * @param {number} b
   * @returns {Node[]}
   */
  rowsAbout(table, a, b) {
    const rows = table.about
      .map((_, at) => at)
      .filter((at) => isRowAbout(table.about[at], a, b))
      .slice(0, 12);
    if (rows.length === 0) return [];
    const columns = table.columns.filter(
      (column) =>
        !["source", "target", "in_model"].includes(column.name) &&
        rows.some((at) => column.cells[at] !== null),
    );
    const body = columns.map((column) =>
      element(
        "tr",
        {},
        element("th", { scope: "row", title: column.meaning || undefined }, column.label),
        ...rows.map((at) => {
          const cell = column.cells[at];
          return element(
            "td",
            { class: "number" },
            typeof cell === "number" ? numberText(cell) : plainCell(cell),
          );
        }),
      ),
    );
    const grid = element("table", { class: "grid" }, element("tbody", {}, ...body));
    return [
      element("h4", {}, table.title),
      element(
        "div",
        {
          class: "scroll",
          tabindex: 0,
          role: "region",
          "aria-label": table.title,
        },
        grid,
      ),
    ];
  }

  /** @param {...(Node | string)} title */
  heading(...title) {
    const close = button("×", () => this.choose(null), {
      class: "close",
      "aria-label": "Close these details",
    });
    return element(
      "div",
      { class: "details-head" },
      element("h3", { tabindex: -1 }, ...title),
      close,
    );
  }
}

/**
 * A strength in a list, below others.
 * @param {number} strength
 */
function listed(strength) {
  return strength >= 0.095 && strength < 100 ? strength.toFixed(2) : strengthText(strength);
}

/**
 * @param {boolean} single
 * @param {number} hidden
 * @param {boolean} behind
 */
function parameterNote(single, hidden, behind) {
  const rows = behind ? " Below each, the rows of the table that it rests on." : "";
  const unit = single
    ? "In the units of the columns, for two continuous columns minus the entry of the precision matrix."
    : "Positive: more of one goes with this level or value of the other, given all others. In the units of the columns.";
  const part = hidden > 0 ? " Of many levels, those that deviate most." : "";
  return unit + rows + part;
}

/** @param {import("./types").Cell} cell */
export function plainCell(cell) {
  if (cell === null) return "";
  return typeof cell === "boolean" ? (cell ? "yes" : "no") : String(cell);
}

/**
 * @param {Edge} edge
 * @param {number} a
 * @param {number} b
 */
function isPair(edge, a, b) {
  return (edge.a === a && edge.b === b) || (edge.a === b && edge.b === a);
}

/**
 * @param {number[]} about
 * @param {number} a
 * @param {number} b
 */
function isRowAbout(about, a, b) {
  return (about[0] === a && about[1] === b) || (about[0] === b && about[1] === a);
}
