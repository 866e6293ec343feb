// Find a column by a part of its name.

import { element } from "./dom.js";

/** @typedef {import("./graph.js").GraphView} GraphView */

/**
 * Make an input mark the columns that match, and Enter choose the best.
 * @param {HTMLInputElement} input
 * @param {HTMLElement} options
 * @param {GraphView} view
 * @param {HTMLElement} status
 */
export function startSearch(input, options, view, status) {
  const names = view.content.graph.nodes.map((node) => node.name);
  options.append(...names.map((name) => element("option", { value: name })));
  const matches = () => {
    const wanted = input.value.trim().toLowerCase();
    if (wanted === "") return [];
    const found = names
      .map((name, at) => ({
        at,
        place: name.toLowerCase().indexOf(wanted),
        length: name.length,
      }))
      .filter((match) => match.place >= 0);
    found.sort((one, other) => one.place - other.place || one.length - other.length);
    return found.map((match) => match.at);
  };
  const choose = () => {
    const [best] = matches();
    if (best === undefined) return;
    view.scene.found = new Set();
    view.select({ node: best }, true);
  };
  input.addEventListener("input", () => {
    const found = matches();
    view.scene.found = new Set(found);
    status.textContent = input.value.trim() === "" ? "" : `${found.length} columns match`;
    if (names.includes(input.value)) choose();
    view.redraw();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      choose();
    }
  });
}
