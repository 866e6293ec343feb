// The live graph: pan, zoom, drag, hover, choose; with a pointer, with fingers, with the keyboard.

import { Camera } from "./camera.js";
import { control, draw, linkWidth, roomOf } from "./drawing.js";
import { Layers } from "./layers.js";
import { countText } from "./numbers.js";
import { Scene } from "./scene.js";
import { onTheme, palette } from "./theme.js";
import { linkHint } from "./words.js";

/** @typedef {import("./camera.js").Point} Point */
/** @typedef {import("./types").Content} Content */
/** @typedef {import("./types").Selection} Selection */

const MOVED = 4;
/** From so many lines on, drawing all of them takes longer than a frame. */
const MANY = 500;

export class GraphView {
  /**
   * @param {Content} content
   * @param {{stage: HTMLElement, canvas: HTMLCanvasElement, hint: HTMLElement, status: HTMLElement}} parts
   * @param {(selection: Selection) => void} onSelect
   */
  constructor(content, parts, onSelect) {
    this.content = content;
    this.scene = new Scene(content.graph);
    this.camera = new Camera();
    this.parts = parts;
    this.onSelect = onSelect;
    const context = parts.canvas.getContext("2d");
    if (context === null) throw new Error("this browser has no canvas");
    this.context = context;
    this.size = { width: 0, height: 0, ratio: 1 };
    this.waiting = false;
    this.layers = new Layers(() => this.redraw());
    this.version = 0;
    /** @type {Map<number, Point>} pointers that are down */
    this.down = new Map();
    this.dragged = -1;
    this.travelled = 0;
    this.touched = false;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(parts.stage);
    onTheme(() => this.redraw());
    this.resize();
  }

  /** Draw soon: once, however many things have changed by then. */
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const sight = {
        scene: this.scene,
        camera: this.camera,
        palette: palette(),
        size: this.size,
      };
      if (this.scene.links.length < MANY) draw(this.context, sight);
      else this.layers.frame(this.context, sight, this.pictureKey(), this.lifted);
    });
  }

  /** The column that is being dragged, or -1. */
  get lifted() {
    return this.travelled > MOVED && this.down.size === 1 ? this.dragged : -1;
  }

  /** What a picture of the graph depends on, besides from where one looks. */
  pictureKey() {
    const { width, height, ratio } = this.size;
    const { ink } = palette();
    return [
      this.scene.version,
      this.scene.smallest,
      this.scene.grouped,
      this.version,
      ink,
      width,
      height,
      ratio,
    ].join();
  }

  resize() {
    const box = this.parts.stage.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) return;
    const ratio = Math.min(Math.max(devicePixelRatio, 1), 2);
    const first = this.size.width === 0;
    this.size = { width: box.width, height: box.height, ratio };
    this.parts.canvas.width = Math.round(box.width * ratio);
    this.parts.canvas.height = Math.round(box.height * ratio);
    if (first) this.scene.stretch((box.width - 140) / Math.max(box.height - 96, 1));
    if (first || !this.touched) this.fit();
    this.redraw();
  }

  /** Show everything. */
  fit() {
    const wide = this.size.width > 600;
    const margin = { x: wide ? 70 : 48, y: wide ? 48 : 40 };
    this.camera.fit(this.scene.places, this.size, margin);
    // A large node with its ring and the mark of the chosen one reaches beyond the usual margin.
    margin.y = Math.max(margin.y, 1.5 * roomOf(this.scene, this.camera).radius + 6);
    this.camera.fit(this.scene.places, this.size, margin);
    this.touched = false;
    this.redraw();
  }

  /** @param {number} factor */
  zoom(factor) {
    this.camera.zoomBy(factor, {
      x: this.size.width / 2,
      y: this.size.height / 2,
    });
    this.touched = true;
    this.redraw();
  }

  /**
   * Choose a column, an edge or nothing; everybody is told.
   * @param {Selection} selection
   * @param {boolean} [bring] whether to bring it into view
   */
  select(selection, bring = false) {
    this.scene.selection = selection;
    this.scene.hovered = null;
    if (selection !== null && bring) this.bring(selection);
    this.onSelect(selection);
    this.redraw();
  }

  /** @param {NonNullable<Selection>} selection */
  bring(selection) {
    const at = "node" in selection ? [selection.node] : [selection.a, selection.b];
    const inside = at.every((node) => {
      const { x, y } = this.camera.toScreen(this.scene.places[node]);
      return x > 20 && y > 20 && x < this.size.width - 20 && y < this.size.height - 20;
    });
    if (inside) return;
    const places = at.map((node) => this.scene.places[node]);
    const middle = {
      x: places.reduce((sum, place) => sum + place.x, 0) / at.length,
      y: places.reduce((sum, place) => sum + place.y, 0) / at.length,
    };
    this.camera.centre(middle, this.size);
    this.touched = true;
  }

  listen() {
    const { stage } = this.parts;
    stage.addEventListener("pointerdown", (event) => this.pressed(event));
    stage.addEventListener("pointermove", (event) => this.moved(event));
    stage.addEventListener("pointerup", (event) => this.released(event));
    stage.addEventListener("pointercancel", (event) => this.down.delete(event.pointerId));
    stage.addEventListener("pointerleave", () => this.hover(null, null));
    stage.addEventListener("wheel", (event) => this.wheeled(event), {
      passive: false,
    });
    stage.addEventListener("dblclick", (event) => {
      this.camera.zoomBy(1.6, this.at(event));
      this.touched = true;
      this.redraw();
    });
    stage.addEventListener("keydown", (event) => this.typed(event));
    stage.addEventListener("blur", () => {
      this.scene.cursor = -1;
      this.redraw();
    });
  }

  /**
   * @param {MouseEvent} event
   * @returns {Point}
   */
  at(event) {
    const box = this.parts.stage.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** @param {PointerEvent} event */
  pressed(event) {
    const point = this.at(event);
    this.down.set(event.pointerId, point);
    this.travelled = 0;
    this.scene.cursor = -1;
    this.dragged = this.down.size === 1 ? this.nodeAt(point) : -1;
    this.parts.stage.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  moved(event) {
    const point = this.at(event);
    const before = this.down.get(event.pointerId);
    if (before === undefined) {
      const found = this.find(point);
      this.hover(found, point);
      return;
    }
    this.travelled += Math.hypot(point.x - before.x, point.y - before.y);
    if (this.down.size >= 2) this.pinched(event.pointerId, point);
    else if (this.travelled > MOVED && this.dragged >= 0) {
      this.scene.places[this.dragged] = this.camera.toWorld(point);
      this.touched = true;
    } else if (this.travelled > MOVED) {
      this.camera.x += point.x - before.x;
      this.camera.y += point.y - before.y;
      this.touched = true;
    }
    this.down.set(event.pointerId, point);
    this.hover(null, null);
    this.redraw();
  }

  /**
   * Two fingers: the distance between them zooms, their middle pans.
   * @param {number} id
   * @param {Point} point
   */
  pinched(id, point) {
    const others = [...this.down.keys()].filter((each) => each !== id);
    const other = this.down.get(others[0]);
    const before = this.down.get(id);
    if (other === undefined || before === undefined) return;
    const was = Math.hypot(before.x - other.x, before.y - other.y);
    const now = Math.hypot(point.x - other.x, point.y - other.y);
    if (was > 0 && now > 0) this.camera.zoomBy(now / was, other);
    this.dragged = -1;
    this.touched = true;
  }

  /** @param {PointerEvent} event */
  released(event) {
    const alone = this.down.size === 1;
    if (this.lifted >= 0) this.version += 1;
    this.down.delete(event.pointerId);
    this.dragged = -1;
    this.redraw();
    if (alone && this.travelled <= MOVED) this.select(this.find(this.at(event)));
  }

  /** @param {WheelEvent} event */
  wheeled(event) {
    // A page that is scrolled past the graph goes on scrolling; the graph zooms once it has focus.
    if (!event.ctrlKey && document.activeElement !== this.parts.stage) return;
    event.preventDefault();
    this.camera.zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), this.at(event));
    this.touched = true;
    this.redraw();
  }

  /**
   * Point at something, or at nothing.
   * @param {Selection} found
   * @param {Point | null} point
   */
  hover(found, point) {
    const { hint, stage } = this.parts;
    const changed = JSON.stringify(found) !== JSON.stringify(this.scene.hovered);
    this.scene.hovered = found;
    stage.classList.toggle("pointing", found !== null);
    if (found === null || point === null) hint.hidden = true;
    else {
      hint.textContent = this.hintText(found);
      hint.hidden = false;
      const right = point.x > this.size.width - 240;
      hint.style.left = right ? "auto" : `${point.x + 14}px`;
      hint.style.right = right ? `${this.size.width - point.x + 14}px` : "auto";
      hint.style.top = `${Math.max(point.y - 10, 4)}px`;
    }
    if (changed) this.redraw();
  }

  /** @param {NonNullable<Selection>} found */
  hintText(found) {
    if (!("node" in found)) {
      const link = this.scene.linkBetween(found.a, found.b);
      return link ? linkHint(this.content, link) : "";
    }
    const node = this.content.graph.nodes[found.node];
    const edges = countText(this.scene.around?.[found.node].length ?? 0, "edge");
    return `${node.name}\n${node.kind}${node.role === "covariate" ? ", covariate" : ""}; ${edges}`;
  }

  /**
   * The column or the edge at a point of the screen.
   * @param {Point} point
   * @returns {Selection}
   */
  find(point) {
    const node = this.nodeAt(point);
    if (node >= 0) return { node };
    let nearest = 7;
    /** @type {Selection} */
    let found = null;
    const room = roomOf(this.scene, this.camera);
    for (const link of this.scene.drawn) {
      const [a, b] = [link.a, link.b].map((at) => this.camera.toScreen(this.scene.places[at]));
      const away =
        distanceToLine(point, a, b, link.bend) - linkWidth(this.scene, room, link.strength) / 2;
      if (away < nearest) [nearest, found] = [away, { a: link.a, b: link.b }];
    }
    return found;
  }

  /** @param {Point} point */
  nodeAt(point) {
    const reach = Math.max(roomOf(this.scene, this.camera).radius * 1.35, 9);
    let [found, nearest] = [-1, reach];
    this.scene.places.forEach((place, at) => {
      const { x, y } = this.camera.toScreen(place);
      const away = Math.hypot(x - point.x, y - point.y);
      if (away < nearest) [found, nearest] = [at, away];
    });
    return found;
  }

  /** @param {KeyboardEvent} event */
  typed(event) {
    /** @type {Record<string, [number, number]>} */
    const arrows = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const arrow = arrows[event.key];
    if (arrow !== undefined && event.shiftKey) {
      this.camera.x -= 60 * arrow[0];
      this.camera.y -= 60 * arrow[1];
      this.touched = true;
    } else if (arrow !== undefined) this.step(arrow[0], arrow[1]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else if (event.key === "0") this.fit();
    else if ((event.key === "Enter" || event.key === " ") && this.scene.cursor >= 0) {
      this.select({ node: this.scene.cursor });
    } else if (event.key === "Escape") {
      this.scene.cursor = -1;
      this.select(null);
    } else return;
    event.preventDefault();
    this.redraw();
  }

  /**
   * Move the keyboard's place to the nearest column in a direction.
   * @param {number} dx
   * @param {number} dy
   */
  step(dx, dy) {
    const { places } = this.scene;
    if (this.scene.cursor < 0) this.scene.cursor = this.middleNode();
    else {
      const here = places[this.scene.cursor];
      let [best, least] = [this.scene.cursor, Infinity];
      places.forEach((place, at) => {
        const [x, y] = [place.x - here.x, place.y - here.y];
        const ahead = x * dx + y * dy;
        const aside = Math.abs(x * dy) + Math.abs(y * dx);
        if (at === this.scene.cursor || ahead <= 0 || aside > 2 * ahead) return;
        if (ahead + 2 * aside < least) [best, least] = [at, ahead + 2 * aside];
      });
      this.scene.cursor = best;
    }
    this.bring({ node: this.scene.cursor });
    this.parts.status.textContent = this.hintText({ node: this.scene.cursor });
  }

  /** The chosen column, or else the one with most edges. */
  middleNode() {
    const chosen = this.scene.selection;
    if (chosen !== null) return "node" in chosen ? chosen.node : chosen.a;
    const around = this.scene.around ?? [];
    let best = 0;
    around.forEach((links, at) => {
      if (links.length > around[best].length) best = at;
    });
    return best;
  }
}

/**
 * From a point to a line between two others that may be bent.
 * @param {Point} point
 * @param {Point} a
 * @param {Point} b
 * @param {number} bend
 */
function distanceToLine(point, a, b, bend) {
  if (bend === 0) return distance(point, a, b);
  const by = control(a, b, bend);
  let nearest = Infinity;
  let before = a;
  for (let k = 1; k <= 8; k++) {
    const [t, s] = [k / 8, 1 - k / 8];
    const next = {
      x: s * s * a.x + 2 * s * t * by.x + t * t * b.x,
      y: s * s * a.y + 2 * s * t * by.y + t * t * b.y,
    };
    nearest = Math.min(nearest, distance(point, before, next));
    before = next;
  }
  return nearest;
}

/**
 * From a point to a line between two others.
 * @param {Point} point
 * @param {Point} a
 * @param {Point} b
 */
function distance(point, a, b) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = dx * dx + dy * dy;
  const along = length > 0 ? ((point.x - a.x) * dx + (point.y - a.y) * dy) / length : 0;
  const share = Math.min(Math.max(along, 0), 1);
  return Math.hypot(point.x - a.x - share * dx, point.y - a.y - share * dy);
}
