// The opening of the report: what was found, and what an edge means.

import { element } from "./dom.js";

/**
 * @param {import("./types").Findings} findings
 * @param {HTMLElement} place
 */
export function showFindings(findings, place) {
  place.append(
    element("p", { class: "lead" }, findings.sentences.join(" ")),
    element("p", { class: "meaning" }, findings.meaning),
  );
}
