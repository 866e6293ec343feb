// Where one looks from: the world of the layout -> points of the screen, and back.

/** @typedef {{x: number, y: number}} Point */

export class Camera {
  constructor() {
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    /** The scale at which everything is seen. */
    this.whole = 1;
    /** The shorter side of the screen. */
    this.side = 1000;
  }

  /**
   * How close one looks, against seeing everything.
   * @returns {number}
   */
  get zoom() {
    return this.scale / this.whole;
  }

  /**
   * @param {Point} world
   * @returns {Point}
   */
  toScreen(world) {
    return {
      x: world.x * this.scale + this.x,
      y: world.y * this.scale + this.y,
    };
  }

  /**
   * @param {Point} screen
   * @returns {Point}
   */
  toWorld(screen) {
    return {
      x: (screen.x - this.x) / this.scale,
      y: (screen.y - this.y) / this.scale,
    };
  }

  /**
   * Zoom in or out around a point of the screen that stays where it is.
   * @param {number} factor
   * @param {Point} around
   */
  zoomBy(factor, around) {
    const wanted = Math.min(Math.max(this.zoom * factor, 0.4), 24);
    const ratio = (wanted * this.whole) / this.scale;
    this.x = around.x + (this.x - around.x) * ratio;
    this.y = around.y + (this.y - around.y) * ratio;
    this.scale *= ratio;
  }

  /**
   * Show all of these points, with room around them.
   * @param {Point[]} points
   * @param {{width: number, height: number}} size
   * @param {{x: number, y: number}} margin
   */
  fit(points, size, margin) {
    const xs = points.map((point) => point.x);
    const ys = points.map((point) => point.y);
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
    const room = {
      x: Math.max(size.width - 2 * margin.x, 40),
      y: Math.max(size.height - 2 * margin.y, 40),
    };
    const scale = Math.min(
      room.x / Math.max(right - left, 1e-3),
      room.y / Math.max(bottom - top, 1e-3),
    );
    this.scale = Number.isFinite(scale) ? Math.min(scale, 400) : 1;
    this.whole = this.scale;
    this.side = Math.min(size.width, size.height);
    this.x = size.width / 2 - ((left + right) / 2) * this.scale;
    this.y = size.height / 2 - ((top + bottom) / 2) * this.scale;
  }

  /**
   * Put a point of the world into the middle.
   * @param {Point} world
   * @param {{width: number, height: number}} size
   */
  centre(world, size) {
    this.x = size.width / 2 - world.x * this.scale;
    this.y = size.height / 2 - world.y * this.scale;
  }
}
