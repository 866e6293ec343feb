// Numbers as people read them.

/**
 * A written number with true minus signs, and none before a zero.
 * @param {string} text
 */
export function withMinus(text) {
  return text.replace(/^-(?=[0.]*$)/, "").replaceAll("-", "−");
}

/**
 * A number with about three digits, and a true minus sign.
 * @param {number | null | undefined} value
 * @param {number} [digits]
 */
export function numberText(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "";
  const size = Math.abs(value);
  let text;
  if (Number.isInteger(value) && size < 1e6) text = value.toLocaleString("en");
  else if (size !== 0 && (size < 1e-3 || size >= 1e6)) text = value.toExponential(1);
  else
    text = Number(value.toPrecision(digits)).toLocaleString("en", {
      maximumFractionDigits: 6,
    });
  return withMinus(text);
}

/**
 * A value on an axis: years and other whole numbers without a separator.
 * @param {number} value
 */
export function axisText(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1e5) return withMinus(String(value));
  return numberText(value);
}

/**
 * A strength from 0 to 1 with two digits after the point, as pictures of networks write it.
 * @param {number} size
 */
export function strengthText(size) {
  if (size === 0 || size === 1) return String(size);
  return size >= 0.01 ? size.toFixed(2) : size.toPrecision(1);
}

/**
 * How all numbers of a column are written: with the same decimals where that shows them all.
 * @param {(number | null)[]} values
 * @returns {(value: number | null) => string}
 */
export function columnFormat(values) {
  const sizes = values.map((value) => Math.abs(value ?? 0)).filter((size) => size > 0);
  if (sizes.every((size) => Number.isInteger(size))) return numberText;
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  if (least < 5e-4 || most >= 1e4) return (value) => numberText(value);
  const places = most < 10 ? 3 : most < 100 ? 2 : 1;
  return (value) => (value === null ? "" : withMinus(value.toFixed(places)));
}

/**
 * A share in per cent.
 * @param {number} share
 */
export function percentText(share) {
  const percent = 100 * share;
  const size = Math.abs(percent);
  const places = (size > 0 && size < 1) || (size > 99 && size < 100) ? 1 : 0;
  return `${withMinus(percent.toFixed(places))}\u00a0%`;
}

/**
 * A count with its noun.
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function countText(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/**
 * A name with its middle left out, for labels.
 * @param {string} name
 * @param {number} most
 */
export function shortName(name, most) {
  const letters = Array.from(name);
  if (letters.length <= most) return name;
  const head = Math.ceil((most - 1) / 2);
  return `${letters.slice(0, head).join("")}…${letters.slice(head + 1 - most).join("")}`;
}
