// The paragraph for a paper, what to cite, and the facts of the computation.

import { copyButton } from "./copying.js";
import { element } from "./dom.js";

/** @typedef {import("./types").Methods} Methods */

/**
 * @param {Methods} methods
 * @param {HTMLElement} place
 */
export function showMethods(methods, place) {
  const facts = methods.facts.flatMap(([name, text]) => [
    element("dt", {}, name),
    element("dd", {}, text),
  ]);
  place.append(
    element(
      "div",
      { class: "columns" },
      element(
        "article",
        { class: "card" },
        element("h3", {}, "For the paper"),
        element("p", { class: "prose", id: "methods-text" }, methods.text),
        copyButton("Copy the paragraph", () => methods.text),
      ),
      element(
        "article",
        { class: "card" },
        element("h3", {}, "To cite"),
        element("pre", { tabindex: 0, "aria-label": "BibTeX" }, methods.bibtex),
        copyButton("Copy the BibTeX", () => methods.bibtex),
      ),
    ),
    element(
      "article",
      { class: "card" },
      element("h3", {}, "To repeat it"),
      element("dl", { class: "facts" }, ...facts),
    ),
  );
}
