// The path under a slider: edges come and go as the penalty falls; the scores of the choice below.

import { label } from "./charts.js";
import { button, element, svg } from "./dom.js";
import { countText, numberText } from "./numbers.js";
import { pairKey } from "./scene.js";

/** @typedef {import("./graph.js").GraphView} GraphView */
/** @typedef {import("./types").Link} Link */
/** @typedef {import("./types").Path} Path */

const LEFT = 58;
const RIGHT = 14;

export class PathPanel {
  /**
   * @param {Path} path
   * @param {HTMLElement} panel
   * @param {GraphView} view
   * @param {() => void} onChange
   */
  constructor(path, panel, view, onChange) {
    this.path = path;
    this.view = view;
    this.onChange = onChange;
    /** @type {number | null} the step that is shown; null: the chosen graph */
    this.step = null;
    const last = path.lams.length - 1;
    this.slider = element("input", {
      type: "range",
      min: 0,
      max: last,
      step: 1,
      value: path.chosen ?? last,
      id: "path-slider",
    });
    this.slider.addEventListener("input", () => this.show(Number(this.slider.value)));
    this.text = element("output", { for: "path-slider", class: "path-text" });
    this.back = button("Show the chosen graph", () => this.show(null));
    this.chart = element("div", { class: "path-chart" });
    panel.append(
      element("p", { class: "fine" }, this.explanation()),
      element(
        "div",
        { class: "path-row" },
        element(
          "label",
          { for: "path-slider", class: "screen-only" },
          "Penalty λ, from strong to weak",
        ),
        this.text,
        this.back,
      ),
      element("div", { class: "path-slide" }, this.slider),
      this.chart,
    );
    new ResizeObserver(() => this.drawChart()).observe(this.chart);
    this.tell();
  }

  explanation() {
    const { byTests, criterion, lam, nLines, lines } = this.path;
    const chosen = byTests
      ? "The graph of this report is not one of these: tests of all pairs chose its edges. " +
        "The dashed line marks where the two are most alike. " +
        "The upper curve counts, for each penalty, pairs that these tests expect to be wrong " +
        "(an edge too many or one too few); the orange line is that number for the graph of this report."
      : criterion
        ? `The dashed line marks the graph of this report: λ = ${lam} was chosen by ${criterion}; the upper curve is what it was chosen by.`
        : `The dashed line marks the graph of this report: λ = ${lam} was given.`;
    const cut =
      lines.length < nLines
        ? ` Of ${nLines.toLocaleString("en")} lines the ${lines.length.toLocaleString("en")} strongest are drawn.`
        : "";
    return `The penalty λ decides how strong a relation must be to become an edge. At the left end of the slider it is so large that there is no edge; as it falls, edges come in, the strongest first. Move the slider, and the graph above follows. ${chosen} Strengths along the path are smaller than in the graph, as the penalty shrinks them.${cut}`;
  }

  /**
   * Show the graph at a step of the path, or the chosen one.
   * @param {number | null} step
   */
  show(step) {
    this.step = step;
    const { scene } = this.view;
    if (step === null) {
      scene.showModel();
      if (this.path.chosen !== null) this.slider.value = String(this.path.chosen);
    } else {
      scene.setLinks(linksAt(this.path, step, scene.graph));
    }
    this.tell();
    this.drawChart();
    this.view.redraw();
    this.onChange();
  }

  tell() {
    const { lams, nEdges } = this.path;
    this.back.hidden = this.step === null;
    this.text.textContent =
      this.step === null
        ? "the chosen graph is shown"
        : `λ = ${numberText(lams[this.step])}: ${countText(nEdges[this.step], "edge")}`;
    const at = this.step ?? this.path.chosen ?? 0;
    this.slider.setAttribute(
      "aria-valuetext",
      `lambda ${numberText(lams[at])}, ${countText(nEdges[at], "edge")}`,
    );
  }

  /** Scores above, numbers of edges below, on the same steps as the slider. */
  drawChart() {
    const wide = this.chart.clientWidth;
    if (wide < 120) return;
    const { scores, nEdges, lams, chosen } = this.path;
    const last = lams.length - 1;
    /** @param {number} at */
    const across = (at) => LEFT + ((wide - LEFT - RIGHT) * at) / Math.max(last, 1);
    const parts = [];
    let top = 8;
    if (scores?.values) {
      const known = [...scores.values, ...(scores.limit ?? [])].filter((value) => value !== null);
      if (known.length > 0) {
        parts.push(...scorePanel(scores, known.map(Number), across, top + 16, 92));
        top += 120;
      }
    }
    parts.push(...curvePanel(nEdges, across, top + 16, 46, "number of edges", "bar-line"));
    const bottom = top + 62;
    for (const [at, look] of /** @type {[number | null, string][]} */ ([
      [chosen, "mark-chosen"],
      [this.step, "mark-shown"],
    ])) {
      if (at !== null)
        parts.push(
          svg("line", {
            x1: across(at),
            x2: across(at),
            y1: 4,
            y2: bottom,
            class: look,
          }),
        );
    }
    parts.push(label(LEFT, bottom + 16, "start", `λ = ${numberText(lams[0])}`));
    parts.push(label(wide - RIGHT, bottom + 16, "end", numberText(lams[last])));
    if (chosen !== null) {
      const inside = Math.min(Math.max(across(chosen), LEFT + 110), wide - RIGHT - 90);
      parts.push(label(inside, bottom + 16, "middle", this.path.byTests ? "nearest" : "chosen"));
    }
    const text = scores
      ? `${scores.label} and number of edges along the path`
      : "Number of edges along the path";
    this.chart.replaceChildren(
      svg(
        "svg",
        {
          width: wide,
          height: bottom + 22,
          viewBox: `0 0 ${wide} ${bottom + 22}`,
          role: "img",
          "aria-label": text,
        },
        ...parts,
      ),
    );
  }
}

/**
 * The edges at a step of the path.
 * @param {Path} path
 * @param {number} step
 * @param {import("./types").Graph} graph
 * @returns {Link[]}
 */
export function linksAt(path, step, graph) {
  /** @type {Map<string, Link>} */
  const links = new Map();
  const bends = new Map(graph.edges.map((edge) => [pairKey(edge.a, edge.b), edge.bend ?? 0]));
  for (const [a, b, moderator, sign, first, sizes] of path.lines) {
    const size = sizes[step - first] ?? 0;
    if (step < first || size === 0) continue;
    const bend = bends.get(pairKey(a, b)) ?? 0;
    const key = `${a} ${b}`;
    const known = links.get(key);
    if (moderator >= 0) {
      if (known) known.varies = true;
      else
        links.set(key, {
          a,
          b,
          strength: 0,
          sign: "",
          directed: false,
          varies: true,
          ridge: false,
          bend,
          edge: -1,
        });
    } else {
      const { nodes } = graph;
      const directed = nodes[a].role === "covariate" || nodes[b].role === "covariate";
      links.set(key, {
        a,
        b,
        strength: size,
        sign,
        directed,
        varies: known?.varies ?? false,
        ridge: false,
        bend,
        edge: -1,
      });
    }
  }
  return [...links.values()];
}

/**
 * @param {import("./types").Scores} scores
 * @param {number[]} known
 * @param {(at: number) => number} across
 * @param {number} top
 * @param {number} tall
 */
function scorePanel(scores, known, across, top, tall) {
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const span = Math.max(high - low, 1e-12);
  /** @param {number} value */
  const up = (value) => top + tall - (tall * (value - low)) / span;
  /** @type {SVGElement[]} */
  const parts = [
    svg("line", { x1: LEFT, x2: LEFT, y1: top, y2: top + tall, class: "axis" }),
    label(LEFT - 6, top + 8, "end", numberText(high)),
    label(LEFT - 6, top + tall, "end", numberText(low)),
    label(LEFT, top - 6, "start", scores.label),
  ];
  if (scores.limit) {
    parts.push(
      svg("polyline", {
        points: pointsOf(scores.limit, across, up),
        class: "limit-line",
      }),
    );
    const end = scores.limit[scores.limit.length - 1];
    if (end !== null)
      parts.push(label(across(scores.limit.length - 1), up(end) - 5, "end", scores.limitLabel));
  }
  scores.errors?.forEach((error, at) => {
    const value = scores.values?.[at];
    if (error === null || value === null || value === undefined) return;
    parts.push(
      svg("line", {
        x1: across(at),
        x2: across(at),
        y1: up(Math.min(value + error, high)),
        y2: up(Math.max(value - error, low)),
        class: "error-line",
      }),
    );
  });
  parts.push(
    svg("polyline", {
      points: pointsOf(scores.values ?? [], across, up),
      class: "score-line",
    }),
  );
  return parts;
}

/**
 * @param {(number | null)[]} values
 * @param {(at: number) => number} across
 * @param {(value: number) => number} up
 */
function pointsOf(values, across, up) {
  return values
    .map((value, at) => (value === null ? "" : `${across(at).toFixed(1)},${up(value).toFixed(1)}`))
    .filter((point) => point !== "")
    .join(" ");
}

/**
 * @param {number[]} values
 * @param {(at: number) => number} across
 * @param {number} top
 * @param {number} tall
 * @param {string} text
 * @param {string} look
 */
function curvePanel(values, across, top, tall, text, look) {
  const most = Math.max(...values, 1);
  /** @param {number} value */
  const up = (value) => top + tall - (tall * value) / most;
  return [
    svg("line", { x1: LEFT, x2: LEFT, y1: top, y2: top + tall, class: "axis" }),
    svg("line", {
      x1: LEFT,
      x2: across(values.length - 1),
      y1: top + tall,
      y2: top + tall,
      class: "axis",
    }),
    label(LEFT - 6, top + 8, "end", numberText(most)),
    label(LEFT - 6, top + tall, "end", "0"),
    label(LEFT, top - 6, "start", text),
    svg("polyline", { points: pointsOf(values, across, up), class: look }),
  ];
}
