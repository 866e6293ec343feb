// Very many edges: what stands still is kept as a picture, and only what moves is drawn anew.

import { Camera } from "./camera.js";
import { clear, drawBright, drawing } from "./drawing.js";

/** @typedef {import("./drawing.js").Sight} Sight */

/** Share of the width and height that the picture reaches beyond the screen on each side. */
const BEYOND = 0.25;
const AT_REST = 160;

export class Layers {
  /** @param {() => void} redraw */
  constructor(redraw) {
    this.redraw = redraw;
    /** @type {Picture | null} what is shown */
    this.picture = null;
    /** @type {Picture | null} what is being drawn */
    this.next = null;
    /** @type {Generator | null} the parts that are still to be drawn */
    this.parts = null;
    this.timer = 0;
    this.key = "";
  }

  /**
   * Draw a frame: the picture, moved to where one looks now, and on it what stands out.
   * @param {CanvasRenderingContext2D} context
   * @param {Sight} sight
   * @param {string} key what else the picture depends on
   * @param {number} dragged a column that is being dragged, or -1
   */
  frame(context, sight, key, dragged) {
    const { camera, scene, size } = sight;
    this.goOn();
    const whole = `${key}|${dragged}`;
    const moved = this.picture === null || !this.picture.isSharp(camera);
    if (whole !== this.key) this.begin(sight, whole, dragged);
    else if (moved && this.parts === null) this.waitForRest(sight, whole, dragged);
    clear(context, size);
    if (this.picture !== null) {
      context.globalAlpha = scene.focus !== null || scene.found.size > 0 ? 0.16 : 1;
      this.picture.show(context, camera);
      context.globalAlpha = 1;
    }
    if (dragged >= 0 || scene.focus !== null || scene.found.size > 0 || scene.cursor >= 0) {
      drawBright(context, sight, dragged);
    }
    if (this.parts !== null) this.redraw();
  }

  /**
   * Make the picture anew once nothing has moved for a moment.
   * @param {Sight} sight
   * @param {string} key
   * @param {number} dragged
   */
  waitForRest(sight, key, dragged) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.begin(sight, key, dragged);
      this.redraw();
    }, AT_REST);
  }

  /**
   * Begin a new picture; it is drawn a part at a time, and shown when it is complete.
   * @param {Sight} sight
   * @param {string} key
   * @param {number} dragged
   */
  begin(sight, key, dragged) {
    clearTimeout(this.timer);
    this.key = key;
    this.next = new Picture(sight);
    const calm = Object.assign(Object.create(sight.scene), {
      hovered: null,
      selection: null,
      cursor: -1,
      found: new Set(),
    });
    this.parts = drawing(this.next.context, { ...this.next.sight, scene: calm }, dragged);
    if (this.picture === null) {
      while (this.parts !== null) this.goOn();
    }
  }

  goOn() {
    if (this.parts === null) return;
    if (this.parts.next().done) {
      this.picture = this.next;
      this.parts = this.next = null;
    }
  }
}

class Picture {
  /** @param {Sight} sight */
  constructor(sight) {
    const { size, camera } = sight;
    this.margin = {
      x: Math.round(size.width * BEYOND),
      y: Math.round(size.height * BEYOND),
    };
    this.size = {
      width: size.width + 2 * this.margin.x,
      height: size.height + 2 * this.margin.y,
      ratio: size.ratio,
      beyond: this.margin,
    };
    this.canvas = document.createElement("canvas");
    this.canvas.width = Math.round(this.size.width * size.ratio);
    this.canvas.height = Math.round(this.size.height * size.ratio);
    const context = this.canvas.getContext("2d");
    if (context === null) throw new Error("this browser has no canvas");
    this.context = context;
    this.camera = Object.assign(new Camera(), camera);
    this.camera.x += this.margin.x;
    this.camera.y += this.margin.y;
    this.sight = { ...sight, camera: this.camera, size: this.size };
  }

  /**
   * Whether it shows what one sees from here, neither stretched nor cut off.
   * @param {Camera} camera
   */
  isSharp(camera) {
    const aside = {
      x: Math.abs(camera.x + this.margin.x - this.camera.x),
      y: Math.abs(camera.y + this.margin.y - this.camera.y),
    };
    return camera.scale === this.camera.scale && aside.x < this.margin.x && aside.y < this.margin.y;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Camera} camera
   */
  show(context, camera) {
    const ratio = camera.scale / this.camera.scale;
    context.drawImage(
      this.canvas,
      camera.x - this.camera.x * ratio,
      camera.y - this.camera.y * ratio,
      this.size.width * ratio,
      this.size.height * ratio,
    );
  }
}
