// Tables that sort, filter and are copied; one is seen at a time.

import { meter } from "./charts.js";
import { copyButton, csvText } from "./copying.js";
import { plainCell } from "./details.js";
import { button, element, named } from "./dom.js";
import { columnFormat, countText } from "./numbers.js";

/** @typedef {import("./types").Content} Content */
/** @typedef {import("./types").Selection} Selection */
/** @typedef {import("./types").Table} Table */
/** @typedef {import("./types").TableColumn} TableColumn */

const PAGE = 50;
const NAMES = ["source", "target", "moderator", "column"];

/** Columns that rows can be filtered by, by table and name, with what the slider says. */
/** @type {Record<string, string | undefined>} */
const LIMITS = {
  "edges strength": "Strength from",
  "edges probability": "Probability from",
  "edges frequency": "Found again from",
  "tests probability": "Probability from",
  "selection inclusion": "Found again from",
};

export class TableView {
  /**
   * @param {Table} table
   * @param {Content} content
   * @param {(selection: Selection) => void} choose
   */
  constructor(table, content, choose) {
    this.table = table;
    this.content = content;
    this.choose = choose;
    this.sorted = { column: -1, down: false };
    this.limit = PAGE;
    this.query = "";
    /** Least value of a column, by its place. @type {Map<number, number>} */
    this.least = new Map();
    this.rows = table.columns[0].cells.map((_, at) => at);
    this.texts = this.rows.map((at) =>
      table.columns
        .map((column) => plainCell(column.cells[at]))
        .join("\n")
        .toLowerCase(),
    );
    this.formats = table.columns.map((column) =>
      columnFormat(column.type === "number" ? /** @type {(number | null)[]} */ (column.cells) : []),
    );
    this.head = element("thead");
    this.body = element("tbody");
    this.count = element("span", { class: "fine", role: "status" });
    this.more = button("Show more rows", () => {
      this.limit += 10 * PAGE;
      this.showRows();
    });
    const filter = element("input", {
      type: "search",
      placeholder: "Filter rows",
      "aria-label": `Filter the table ${table.title}`,
      id: `filter-${table.key}`,
    });
    filter.addEventListener("input", () => {
      this.query = filter.value.trim().toLowerCase();
      this.limit = PAGE;
      this.update();
    });
    const tools = element(
      "div",
      { class: "tools" },
      filter,
      ...this.limits(),
      copyButton("Copy as CSV", () => csvText(table, this.rows)),
      this.count,
    );
    const grid = element("table", { class: "data" }, this.head, this.body);
    this.element = element(
      "div",
      {},
      table.note && element("p", { class: "fine" }, table.note),
      tools,
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
      this.more,
    );
    this.showHead();
    this.update();
  }

  /**
   * Sliders for the least strength and the least certainty.
   * @returns {Node[]}
   */
  limits() {
    return this.table.columns.flatMap((column, at) => {
      const label = LIMITS[`${this.table.key} ${column.name}`];
      if (label === undefined) return [];
      const id = `least-${this.table.key}-${column.name}`;
      const slider = element("input", {
        type: "range",
        min: 0,
        max: 1,
        step: 0.01,
        value: 0,
        id,
      });
      const shown = element("output", { for: id, class: "fine" }, "0");
      slider.addEventListener("input", () => {
        shown.textContent = Number(slider.value).toFixed(2);
        this.least.set(at, Number(slider.value));
        this.limit = PAGE;
        this.update();
      });
      return [
        element("span", { class: "limit" }, element("label", { for: id }, label), slider, shown),
      ];
    });
  }

  showHead() {
    const cells = this.table.columns.map((column, at) => {
      const here = this.sorted.column === at;
      const arrow = here ? (this.sorted.down ? " ↓" : " ↑") : "";
      const sorter = button(`${column.label}${arrow}`, () => this.sortBy(at), {
        title: column.meaning || undefined,
      });
      return element(
        "th",
        {
          scope: "col",
          class: column.type === "number" ? "number" : undefined,
          "aria-sort": here ? (this.sorted.down ? "descending" : "ascending") : "none",
        },
        sorter,
      );
    });
    this.head.replaceChildren(element("tr", {}, ...cells));
  }

  /** @param {number} at */
  sortBy(at) {
    const numeric = this.table.columns[at].type !== "text";
    const again = this.sorted.column === at;
    this.sorted = { column: at, down: again ? !this.sorted.down : numeric };
    this.showHead();
    this.update();
    this.head.querySelectorAll("button")[at].focus();
  }

  /** Find the rows that the filter lets through, in order. */
  update() {
    const every = this.table.columns[0].cells.map((_, at) => at);
    const words = this.query.split(/\s+/).filter((word) => word !== "");
    const limits = [...this.least].filter(([, least]) => least > 0);
    this.rows = every.filter(
      (at) =>
        words.every((word) => this.texts[at].includes(word)) &&
        limits.every(([k, least]) => Number(this.table.columns[k].cells[at] ?? -1) >= least),
    );
    if (this.sorted.column >= 0) {
      const { cells } = this.table.columns[this.sorted.column];
      const way = this.sorted.down ? -1 : 1;
      this.rows.sort((one, other) => compared(cells[one], cells[other], way) || one - other);
    }
    this.showRows();
  }

  showRows() {
    const shown = this.rows.slice(0, this.limit);
    this.body.replaceChildren(...shown.map((at) => this.row(at)));
    const total = this.table.columns[0].cells.length;
    const kept =
      this.rows.length === total
        ? countText(total, "row")
        : `${this.rows.length.toLocaleString("en")} of ${countText(total, "row")}`;
    const part = shown.length < this.rows.length ? `, the first ${shown.length} shown` : "";
    this.count.textContent = kept + part;
    this.more.hidden = this.rows.length <= this.limit;
  }

  /** @param {number} at */
  row(at) {
    const about = this.table.about[at] ?? [];
    /** @type {Selection} */
    const selection =
      about.length >= 2 && about[0] >= 0 && about[1] >= 0
        ? { a: about[0], b: about[1] }
        : about.length === 1 && about[0] >= 0
          ? { node: about[0] }
          : null;
    const cells = this.table.columns.map((column, k) =>
      this.cell(column, at, k === 0 ? selection : null),
    );
    const made = element("tr", { class: selection ? "about" : undefined }, ...cells);
    if (selection) made.addEventListener("click", () => this.choose(selection));
    return made;
  }

  /**
   * @param {TableColumn} column
   * @param {number} at
   * @param {Selection} selection
   */
  cell(column, at, selection) {
    const cell = column.cells[at];
    if (column.type === "number") {
      const write = this.formats[this.table.columns.indexOf(column)];
      const text = write(/** @type {number | null} */ (cell));
      if (column.name !== "strength" && column.name !== "probability") {
        return element("td", { class: "number" }, text);
      }
      return element(
        "td",
        { class: "number with-bar" },
        text,
        meter(Number(cell), this.look(column, at)),
      );
    }
    const text = plainCell(cell).replace(/^-$/, "−");
    if (selection && typeof cell === "string") {
      return element("td", {}, element("button", { type: "button", class: "link" }, named(text)));
    }
    return element("td", {}, NAMES.includes(column.name) ? named(text) : text);
  }

  /**
   * The colour of a bar: that of the sign of its row, where the table has signs.
   * @param {TableColumn} column
   * @param {number} at
   */
  look(column, at) {
    const signs = this.table.columns.find((each) => each.name === "sign");
    if (column.name !== "strength" || signs === undefined) return "bar";
    const sign = signs.cells[at];
    return sign === "+" ? "positive" : sign === "-" ? "negative" : "unsigned";
  }
}

/**
 * Order of two cells: empty ones always last.
 * @param {import("./types").Cell} one
 * @param {import("./types").Cell} other
 * @param {number} way
 */
function compared(one, other, way) {
  if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1;
  if (typeof one === "string" || typeof other === "string") {
    return way * String(one).localeCompare(String(other), "en", { numeric: true });
  }
  return way * (Number(one) - Number(other));
}

/**
 * All tables behind tabs.
 * @param {Content} content
 * @param {HTMLElement} place
 * @param {(selection: Selection) => void} choose
 */
export function showTables(content, place, choose) {
  const tables = content.tables ?? [];
  const list = element("div", {
    role: "tablist",
    "aria-label": "Tables",
    class: "tabs",
  });
  /** @type {HTMLElement[]} */
  const panels = [];
  /** @type {HTMLButtonElement[]} */
  const tabs = [];
  /** @type {Set<number>} */
  const filled = new Set();
  /** @param {number} at */
  const fill = (at) => {
    if (filled.has(at)) return;
    filled.add(at);
    panels[at].append(new TableView(tables[at], content, choose).element);
  };
  /** @param {number} at */
  const open = (at) => {
    fill(at);
    tabs.forEach((tab, k) => {
      tab.setAttribute("aria-selected", String(k === at));
      tab.tabIndex = k === at ? 0 : -1;
      panels[k].hidden = k !== at;
    });
  };
  tables.forEach((table, at) => {
    const tab = button(table.title, () => open(at), {
      role: "tab",
      id: `tab-${table.key}`,
      "aria-controls": `panel-${table.key}`,
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      const next = (at + step + tables.length) % tables.length;
      open(next);
      tabs[next].focus();
    });
    tabs.push(tab);
    panels.push(
      element(
        "div",
        {
          role: "tabpanel",
          id: `panel-${table.key}`,
          "aria-labelledby": `tab-${table.key}`,
          class: "panel",
        },
        element("h3", { class: "print-only" }, table.title),
      ),
    );
  });
  list.append(...tabs);
  place.append(list, ...panels);
  open(0);
  addEventListener("beforeprint", () => tables.forEach((_, at) => fill(at)));
}
