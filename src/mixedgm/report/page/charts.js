// Small charts: each is drawn from a few numbers, and says what it shows to those who cannot see it.

import { element, named, svg } from "./dom.js";
import { axisText, numberText, percentText, shortName } from "./numbers.js";

/** @typedef {import("./types").Effect} Effect */
/** @typedef {import("./types").Histogram} Histogram */
/** @typedef {import("./types").Parameters} Parameters */

const WIDE = 320;
const MOST_LINES = 6;

/**
 * How the values of a column are distributed.
 * @param {Histogram} chart
 * @param {string} name
 */
export function histogramChart(chart, name) {
  const total = chart.counts.reduce((sum, count) => sum + count, 0) + chart.zeros;
  const parts = [];
  if (chart.names.length > 0) parts.push(barList(chart.names, chart.counts, total));
  else if (chart.counts.length > 0) {
    if (chart.zeros > 0) {
      parts.push(barList(["zero", "not zero"], [chart.zeros, total - chart.zeros], total));
    }
    parts.push(columnChart(chart, name));
  }
  if (chart.hidden > 0)
    parts.push(element("p", { class: "fine" }, `${chart.hidden} rarer values are not shown.`));
  if (chart.missing > 0) {
    parts.push(element("p", { class: "fine" }, `${numberText(chart.missing)} cells are missing.`));
  }
  return element("div", { class: "chart" }, ...parts);
}

/**
 * @param {Histogram} chart
 * @param {string} name
 */
function columnChart(chart, name) {
  const [tall, base] = [90, 92];
  const most = Math.max(...chart.counts, 1e-300);
  const step = WIDE / chart.counts.length;
  const bars = chart.counts.map((count, at) =>
    svg("rect", {
      x: at * step + 0.5,
      y: base - (tall * count) / most,
      width: Math.max(step - 1, 0.5),
      height: (tall * count) / most,
      class: "bar",
    }),
  );
  const [low, high] = [chart.edges[0], chart.edges[chart.edges.length - 1]];
  return svg(
    "svg",
    {
      viewBox: `0 0 ${WIDE} 112`,
      role: "img",
      "aria-label": `Histogram of ${name}, from ${numberText(low)} to ${numberText(high)}`,
    },
    ...bars,
    svg("line", { x1: 0, x2: WIDE, y1: base, y2: base, class: "axis" }),
    label(0, 107, "start", axisText(low)),
    label(WIDE, 107, "end", axisText(high)),
  );
}

/**
 * Names with bars beside them.
 * @param {string[]} names
 * @param {number[]} counts
 * @param {number} total
 */
function barList(names, counts, total) {
  const most = Math.max(...counts, 1e-300);
  const rows = names.map((name, at) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, named(name)),
      element("td", { class: "bar-cell" }, meter(counts[at] / most)),
      element("td", { class: "number" }, percentText(counts[at] / Math.max(total, 1e-300))),
    ),
  );
  return element("table", { class: "bars" }, element("tbody", {}, ...rows));
}

/**
 * A bar whose length is a share.
 * @param {number} share
 * @param {string} [look]
 */
export function meter(share, look = "bar") {
  const width = Math.max(Math.min(share, 1), 0) * 100;
  return svg(
    "svg",
    {
      class: "meter",
      viewBox: "0 0 100 8",
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    svg("rect", { x: 0, y: 0, width, height: 8, class: look }),
  );
}

/**
 * How predictions change: lines along numbers, dots or a table at levels.
 * @param {Effect} effect
 * @param {string} source
 * @param {string} target
 */
export function effectChart(effect, source, target) {
  const numeric = effect.values.every((value) => typeof value === "number");
  if (numeric && (effect.levels.length === 0 || effect.levels.length <= MOST_LINES)) {
    return lineChart(effect, source, target);
  }
  if (effect.levels.length === 0) return dotList(effect);
  return shareTable(effect, source, target);
}

/**
 * @param {Effect} effect
 * @param {string} source
 * @param {string} target
 */
function lineChart(effect, source, target) {
  const shares = effect.levels.length > 0;
  const xs = effect.values.map(Number);
  const every = effect.predicted.flat();
  let [low, high] = shares
    ? [0, Math.max(...every) * 1.05]
    : [Math.min(...every), Math.max(...every)];
  if (high - low < 1e-12) [low, high] = [low - 1, high + 1];
  const names = effect.levels.map((level) => endCut(level, 22));
  const longest = Math.max(...names.map((name) => name.length), 0);
  const right = shares ? WIDE - Math.min(14 + 6.2 * longest, 150) : WIDE - 12;
  const [left, top, bottom] = [46, 10, 120];
  /** @param {number} x */
  const across = (x) =>
    left + ((right - left) * (x - xs[0])) / Math.max(xs[xs.length - 1] - xs[0], 1e-300);
  /** @param {number} y */
  const up = (y) => bottom - ((bottom - top) * (y - low)) / (high - low);
  const count = effect.predicted[0].length;
  const marks = [];
  const ends = [];
  for (let k = 0; k < count; k++) {
    const points = effect.predicted.map(
      (row, at) => `${across(xs[at]).toFixed(1)},${up(row[k]).toFixed(1)}`,
    );
    marks.push(
      svg("polyline", {
        points: points.join(" "),
        class: `curve look-${k % MOST_LINES}`,
      }),
    );
    effect.predicted.forEach((row, at) => {
      marks.push(
        svg("circle", {
          cx: across(xs[at]),
          cy: up(row[k]),
          r: 2.2,
          class: `dot look-${k % MOST_LINES}`,
        }),
      );
    });
    if (shares)
      ends.push({
        y: up(effect.predicted[xs.length - 1][k]),
        text: names[k],
      });
  }
  const write = shares ? percentText : axisText;
  return svg(
    "svg",
    {
      viewBox: `0 0 ${WIDE} 146`,
      role: "img",
      "aria-label": `Predicted ${target} by ${source}`,
      class: "effect",
    },
    svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }),
    svg("line", { x1: left, x2: left, y1: top, y2: bottom, class: "axis" }),
    ...marks,
    ...apart(ends, 12).map((end) => label(right + 6, end.y + 4, "start", end.text)),
    label(left - 6, up(low) + 2, "end", write(low)),
    label(left - 6, up(high) + 8, "end", write(high)),
    label(left, 134, "start", axisText(xs[0])),
    label(right, 134, "end", axisText(xs[xs.length - 1])),
    label((left + right) / 2, 144, "middle", shortName(source, 30)),
  );
}

/**
 * A level that is too long without its end: levels are told apart by what comes first.
 * @param {string} text
 * @param {number} most
 */
function endCut(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}

/**
 * Labels moved so that none covers another.
 * @param {{y: number, text: string}[]} labels
 * @param {number} gap
 */
function apart(labels, gap) {
  const sorted = [...labels].sort((one, other) => one.y - other.y);
  for (let k = 1; k < sorted.length; k++)
    sorted[k].y = Math.max(sorted[k].y, sorted[k - 1].y + gap);
  return sorted;
}

/**
 * One number at each level.
 * @param {Effect} effect
 */
function dotList(effect) {
  const values = effect.predicted.map((row) => row[0]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const span = Math.max(high - low, 1e-300);
  const rows = effect.values.map((level, at) => {
    const place = 4 + (92 * (values[at] - low)) / span;
    const line = svg(
      "svg",
      {
        class: "meter",
        viewBox: "0 0 100 10",
        "aria-hidden": "true",
        preserveAspectRatio: "none",
      },
      svg("line", { x1: 0, x2: 100, y1: 5, y2: 5, class: "guide" }),
      svg("rect", { x: place - 1.5, y: 1, width: 3, height: 8, class: "bar" }),
    );
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, named(String(level))),
      element("td", { class: "bar-cell" }, line),
      element("td", { class: "number" }, numberText(values[at])),
    );
  });
  return element("table", { class: "bars" }, element("tbody", {}, ...rows));
}

/**
 * Shares of the levels of one column at values of the other.
 * @param {Effect} effect
 * @param {string} source
 * @param {string} target
 */
function shareTable(effect, source, target) {
  const rows = effect.values.map((value) =>
    typeof value === "number" ? numberText(value) : value,
  );
  return gridTable(rows, effect.levels, effect.predicted, {
    row: source,
    column: target,
    text: (share) => percentText(share).replace("\u00a0%", ""),
    caption: "per cent",
    label: `Predicted ${target} by ${source}`,
  });
}

/**
 * What the rows of the table with each level have, folded away; nothing where that is not known.
 * @param {Effect} effect
 * @param {string} source
 */
export function observedList(effect, source) {
  const known = effect.rows.map((_, at) => at).filter((at) => effect.rows[at] !== null);
  if (known.length === 0) return null;
  const names = effect.levels.length > 0 ? effect.levels : ["mean"];
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, named(source)),
    element("th", { scope: "col" }, "rows"),
    ...names.map((name) => element("th", { scope: "col" }, named(name))),
  );
  const body = known.map((at) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, named(String(effect.values[at]))),
      element("td", { class: "number" }, numberText(effect.rows[at] ?? 0)),
      ...effect.observed[at].map((value) => {
        const text = effect.levels.length > 0 ? percentText(value ?? 0) : numberText(value ?? 0);
        return element("td", { class: "number" }, text);
      }),
    ),
  );
  const note =
    "Rows with each level (at least 30), the other columns as they come with it; above, these are the same for all levels.";
  return element(
    "details",
    {},
    element("summary", {}, "What the table has"),
    element(
      "div",
      {
        class: "scroll",
        tabindex: 0,
        role: "region",
        "aria-label": `What the table has by ${source}`,
      },
      element(
        "table",
        { class: "grid" },
        element("thead", {}, head),
        element("tbody", {}, ...body),
      ),
    ),
    element("p", { class: "fine" }, note),
  );
}

/**
 * The parameters of an edge: positive entries mean that two levels occur together more often.
 * @param {Parameters} parameters
 */
export function parameterTable(parameters) {
  return gridTable(parameters.rows, parameters.columns, parameters.values, {
    row: parameters.rowTitle,
    column: parameters.columnTitle,
    text: (value) => numberText(value, 2),
    signed: true,
    label: `Parameters of ${parameters.rowTitle} and ${parameters.columnTitle}`,
    behind: parameters.behind.length > 0 ? parameters.behind : undefined,
  });
}

/**
 * A table of numbers, shaded by size; the longer side goes down, where there is room for names.
 * @param {string[]} rows
 * @param {string[]} columns
 * @param {(number | null)[][]} values
 * @param {{row: string, column: string, label: string, text: (value: number) => string, signed?: boolean, caption?: string, behind?: (number | null)[][]}} look
 */
function gridTable(rows, columns, values, look) {
  if (columns.length > rows.length) {
    /** @param {(number | null)[][]} given */
    const turned = (given) => columns.map((_, at) => given.map((row) => row[at]));
    return gridTable(columns, rows, turned(values), {
      ...look,
      behind: look.behind && turned(look.behind),
      row: look.column,
      column: look.row,
    });
  }
  const most = Math.max(...values.flat().map((value) => Math.abs(value ?? 0)), 1e-300);
  const head = element(
    "tr",
    {},
    element("th", { scope: "col", class: "corner" }, named(look.row), " \\ ", named(look.column)),
    ...columns.map((name) => element("th", { scope: "col" }, named(name))),
  );
  const body = rows.map((name, at) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, named(name)),
      ...values[at].map((value, k) => {
        const n = look.behind?.[at][k] ?? null;
        const rows = n !== null && element("span", { class: "behind" }, numberText(Math.round(n)));
        const text = value === null ? "" : look.text(value);
        const cell = element("td", { class: "number" }, text, rows);
        const share = Math.round((100 * Math.abs(value ?? 0)) / most / 2.2);
        const colour = !look.signed || (value ?? 0) > 0 ? "positive" : "negative";
        cell.style.backgroundColor = `color-mix(in srgb, var(--${colour}) ${share}%, transparent)`;
        return cell;
      }),
    ),
  );
  const table = element(
    "table",
    { class: "grid" },
    look.caption && element("caption", {}, look.caption),
    element("thead", {}, head),
    element("tbody", {}, ...body),
  );
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": look.label },
    table,
  );
}

/**
 * @param {number} x
 * @param {number} y
 * @param {"start" | "middle" | "end"} anchor
 * @param {string} text
 */
export function label(x, y, anchor, text) {
  return svg("text", { x, y, "text-anchor": anchor, class: "tick" }, text);
}
