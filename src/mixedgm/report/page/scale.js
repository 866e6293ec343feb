// Strengths of edges -> widths and opacities of their lines: the scale of the static pictures.

/** @typedef {import("./types").ScaleLook} ScaleLook */

export class Scale {
  /** @param {ScaleLook} look */
  constructor(look) {
    this.look = look;
  }

  /** @param {number} size */
  recedes(size) {
    return this.look.cut !== null && size < this.look.cut;
  }

  /**
   * The width of a line in points, where nodes are far apart.
   * @param {number} size
   * @param {number} [widest]
   */
  width(size, widest = this.look.widest) {
    const { thinnest, receded } = this.look;
    return this.recedes(size)
      ? thinnest + (receded - thinnest) * this.below(size)
      : receded + (widest - receded) * this.above(size);
  }

  /**
   * How solid a line is, from 0.1 to 1.
   * @param {number} size
   */
  opacity(size) {
    const { maximum, cut, faintest, faint, solid } = this.look;
    if (this.recedes(size)) return faintest + (faint - faintest) * this.below(size);
    if (cut === null) return Math.max(faintest, Math.sqrt(Math.min(size / maximum, 1)));
    return solid + (1 - solid) * Math.sqrt(this.above(size));
  }

  /** @param {number} size */
  below(size) {
    return size / (this.look.cut ?? 1);
  }

  /** @param {number} size */
  above(size) {
    const low = this.look.cut ?? 0;
    const span = this.look.maximum - low;
    return span > 0 ? Math.min((size - low) / span, 1) : 1;
  }
}
