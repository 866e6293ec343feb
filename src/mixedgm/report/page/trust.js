// What speaks for the model and what against it.

import { button, element, named } from "./dom.js";

/** @typedef {import("./types").Answer} Answer */
/** @typedef {import("./types").Flag} Flag */
/** @typedef {import("./types").Remedy} Remedy */
/** @typedef {import("./types").Selection} Selection */

const STATES = {
  good: ["✓", "fine"],
  look: ["!", "look at this"],
  bad: ["✕", "a problem"],
  unknown: ["i", "to know"],
};
const FEW = 3;

/**
 * @param {Answer[]} answers
 * @param {HTMLElement} place
 * @param {(selection: Selection) => void} choose
 */
export function showTrust(answers, place, choose) {
  place.append(...answers.map((answer) => card(answer, choose)));
  addEventListener("beforeprint", () => {
    for (const folded of place.querySelectorAll("details")) folded.open = true;
  });
}

/**
 * @param {Answer} answer
 * @param {(selection: Selection) => void} choose
 */
function card(answer, choose) {
  const [mark, word] = STATES[answer.status];
  const state = element(
    "span",
    { class: `state ${answer.status}`, role: "img", "aria-label": word },
    mark,
  );
  const lines = element("ul", {}, ...answer.lines.map((line) => element("li", {}, line)));
  const long = answer.lines.length > FEW;
  return element(
    "article",
    { class: "card", id: `trust-${answer.key}` },
    element("h3", {}, state, answer.title),
    element("p", {}, answer.summary),
    answer.remedies && remedyList(answer.remedies, choose),
    answer.lines.length > 0 &&
      (long
        ? element("details", {}, element("summary", {}, `${answer.lines.length} points`), lines)
        : lines),
  );
}

/**
 * What is flagged by what to do about it.
 * @param {Remedy[]} remedies
 * @param {(selection: Selection) => void} choose
 */
function remedyList(remedies, choose) {
  const few = remedies.reduce((sum, remedy) => sum + remedy.flags.length, 0) <= FEW;
  const items = remedies.map((remedy) =>
    element(
      "li",
      {},
      element("strong", {}, capital(remedy.meaning)),
      element("p", {}, remedy.text),
      element("p", {}, element("em", {}, "To do: "), remedy.toDo),
      element(
        "ul",
        { class: "flags" },
        ...remedy.flags.map((flag) => flagItem(flag, choose)),
        remedy.hidden > 0 && element("li", {}, `and ${remedy.hidden} more`),
      ),
    ),
  );
  const summary = element("summary", {}, "What is flagged, what it means, and what to do");
  return element("details", { open: few }, summary, element("ul", { class: "remedies" }, ...items));
}

/**
 * @param {Flag} flag
 * @param {(selection: Selection) => void} choose
 */
function flagItem(flag, choose) {
  const known = flag.about.every((at) => at >= 0);
  const [a, b] = flag.about;
  const open = button("", () => known && choose(b === undefined ? { node: a } : { a, b }), {
    class: "link",
  });
  flag.names.forEach((name, at) => open.append(...(at > 0 ? [" – "] : []), named(name)));
  const where = flag.where.replace(/-(?=[\d.]+$)/, "−");
  const facts = [where, flag.size].filter((text) => text !== "").join("; ");
  return element("li", {}, open, facts && element("span", { class: "fine" }, ` (${facts})`));
}

/** @param {string} text */
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
