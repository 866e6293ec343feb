// What drawing needs of a canvas, and a pen that writes the same as SVG, so that text stays text.

import { svg } from "./dom.js";

/**
 * @typedef {Pick<CanvasRenderingContext2D, "beginPath" | "moveTo" | "lineTo" | "quadraticCurveTo" |
 *   "arc" | "closePath" | "stroke" | "fill" | "fillText" | "strokeText" | "measureText" |
 *   "setLineDash" | "setTransform" | "clearRect" | "strokeStyle" | "fillStyle" | "lineWidth" |
 *   "globalAlpha" | "font" | "textAlign" | "textBaseline" | "lineCap" | "lineJoin">} Pen
 */

/** @implements {Pen} */
export class SvgPen {
  /** @param {SVGElement} root */
  constructor(root) {
    this.root = root;
    this.path = "";
    /** @type {number[]} */
    this.dashes = [];
    /** @type {string | CanvasGradient | CanvasPattern} */
    this.strokeStyle = "#000";
    /** @type {string | CanvasGradient | CanvasPattern} */
    this.fillStyle = "#000";
    this.lineWidth = 1;
    this.globalAlpha = 1;
    this.font = "10px sans-serif";
    /** @type {CanvasTextAlign} */
    this.textAlign = "start";
    /** @type {CanvasTextBaseline} */
    this.textBaseline = "alphabetic";
    /** @type {CanvasLineCap} */
    this.lineCap = "butt";
    /** @type {CanvasLineJoin} */
    this.lineJoin = "miter";
    const ruler = document.createElement("canvas").getContext("2d");
    if (ruler === null) throw new Error("this browser has no canvas");
    this.ruler = ruler;
  }

  setTransform() {}

  clearRect() {}

  beginPath() {
    this.path = "";
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  moveTo(x, y) {
    this.path += `M${at(x, y)}`;
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  lineTo(x, y) {
    this.path += `L${at(x, y)}`;
  }

  /**
   * @param {number} cx
   * @param {number} cy
   * @param {number} x
   * @param {number} y
   */
  quadraticCurveTo(cx, cy, x, y) {
    this.path += `Q${at(cx, cy)} ${at(x, y)}`;
  }

  /**
   * Clockwise, in two halves, as a whole circle cannot be one arc.
   * @param {number} x
   * @param {number} y
   * @param {number} radius
   * @param {number} start
   * @param {number} end
   */
  arc(x, y, radius, start, end) {
    /** @param {number} turn */
    const point = (turn) => at(x + radius * Math.cos(turn), y + radius * Math.sin(turn));
    this.path += `M${point(start)}`;
    for (const turn of [(start + end) / 2, end])
      this.path += `A${at(radius, radius)} 0 0 1 ${point(turn)}`;
  }

  closePath() {
    this.path += "Z";
  }

  stroke() {
    this.add("path", { d: this.path, ...this.strokeLook() });
  }

  fill() {
    this.add("path", { d: this.path, fill: String(this.fillStyle), ...this.alpha() });
  }

  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   */
  fillText(text, x, y) {
    this.add("text", { ...this.type(x, y), fill: String(this.fillStyle), ...this.alpha() }, text);
  }

  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   */
  strokeText(text, x, y) {
    this.add("text", { ...this.type(x, y), ...this.strokeLook() }, text);
  }

  /** @param {string} text */
  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  /** @param {number[]} dashes */
  setLineDash(dashes) {
    this.dashes = dashes;
  }

  strokeLook() {
    return {
      fill: "none",
      stroke: String(this.strokeStyle),
      "stroke-width": short(this.lineWidth),
      "stroke-dasharray": this.dashes.length > 0 ? this.dashes.map(short).join(" ") : undefined,
      "stroke-linecap": this.lineCap === "butt" ? undefined : this.lineCap,
      "stroke-linejoin": this.lineJoin === "miter" ? undefined : this.lineJoin,
      ...this.alpha(),
    };
  }

  alpha() {
    return { opacity: this.globalAlpha === 1 ? undefined : short(this.globalAlpha) };
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  type(x, y) {
    const size = parseFloat(this.font.match(/[\d.]+px/)?.[0] ?? "10");
    return {
      x: short(x),
      y: short(y + (this.textBaseline === "middle" ? 0.35 * size : 0)),
      "font-size": short(size),
      "font-weight": /\b(bold|600)\b/.test(this.font) ? "bold" : undefined,
      "font-family": "system-ui, sans-serif",
      "text-anchor": this.textAlign === "center" ? "middle" : undefined,
    };
  }

  /**
   * @param {"path" | "text"} tag
   * @param {Record<string, string | number | undefined>} attributes
   * @param {string} [text]
   */
  add(tag, attributes, text) {
    this.root.append(svg(tag, attributes, text));
  }
}

/** @param {number} value */
function short(value) {
  return Number(value.toFixed(2));
}

/**
 * @param {number} x
 * @param {number} y
 */
function at(x, y) {
  return `${short(x)} ${short(y)}`;
}
