// Tables as comma-separated values, and texts on the clipboard.

import { button } from "./dom.js";

/** @typedef {import("./types").Table} Table */
/** @typedef {import("./types").Cell} Cell */

/**
 * Rows of a table as CSV. Text that a spreadsheet would run as a formula gets an apostrophe.
 * @param {Table} table
 * @param {number[]} rows
 */
export function csvText(table, rows) {
  const lines = [table.columns.map((column) => csvCell(column.name)).join(",")];
  for (const at of rows)
    lines.push(table.columns.map((column) => csvCell(column.cells[at])).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

/** @param {Cell} cell */
function csvCell(cell) {
  if (cell === null) return "";
  if (typeof cell !== "string") return String(cell);
  const safe = /^[=+\-@\t\r]/.test(cell) && !/^[+-]$/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * A button that copies a text, and says so.
 * @param {string} name
 * @param {() => string} text
 */
export function copyButton(name, text) {
  const made = button(name, async () => {
    made.textContent = (await copied(text())) ? "Copied" : "Copying is not allowed here";
    setTimeout(() => (made.textContent = name), 1600);
  });
  made.setAttribute("aria-live", "polite");
  return made;
}

/**
 * @param {string} text
 * @returns {Promise<boolean>}
 */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text);
  }
}

/**
 * The way of older browsers, and of frames that may not use the clipboard.
 * @param {string} text
 */
function copiedBySelection(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "hidden-text";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
