// What speaks for the model and what against it.

import { button, element, named } from "./dom.js";

/** @typedef {import("./types").Answer} Answer */
/** @typedef {import("./types").Flag} Flag */
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
    answer.flags && flagList(answer.flags, choose),
    answer.lines.length > 0 &&
      (long
        ? element("details", {}, element("summary", {}, `${answer.lines.length} points`), lines)
        : lines),
  );
}

/**
 * @param {Flag[]} flags
 * @param {(selection: Selection) => void} choose
 */
function flagList(flags, choose) {
  const items = flags.map((flag) => {
    const known = flag.about.every((at) => at >= 0);
    const open = button(
      "",
      () => {
        if (known)
          choose(
            flag.about.length === 1
              ? { node: flag.about[0] }
              : { a: flag.about[0], b: flag.about[1] },
          );
      },
      { class: "link" },
    );
    flag.names.forEach((name, at) => open.append(...(at > 0 ? [" – "] : []), named(name)));
    return element(
      "li",
      {},
      open,
      element("strong", {}, ` ${flag.meaning}`),
      flag.size && element("span", { class: "fine" }, ` (${flag.size})`),
      element("div", { class: "fine" }, flag.advice),
    );
  });
  const list = element("ul", { class: "flags" }, ...items);
  const summary = element("summary", {}, "What is flagged, what it means, and what to do");
  return element("details", { open: flags.length <= FEW }, summary, list);
}
