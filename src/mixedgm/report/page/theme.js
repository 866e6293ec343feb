// Light and dark, and the colours that a canvas needs by value.

/**
 * @typedef {object} Palette
 * @property {string} ink
 * @property {string} muted
 * @property {string} surface
 * @property {string} accent
 * @property {string} positive
 * @property {string} negative
 * @property {string} unsigned
 * @property {string} ring
 * @property {string} track
 * @property {boolean} dark
 */

/** @type {Set<() => void>} */
const listeners = new Set();

/** @type {Palette | null} */
let known = null;

/**
 * The colours of the theme in use, from the style sheet.
 * @returns {Palette}
 */
export function palette() {
  if (known !== null) return known;
  const style = getComputedStyle(document.documentElement);
  /** @param {string} name */
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  known = {
    ink: colour("ink"),
    muted: colour("muted"),
    surface: colour("surface"),
    accent: colour("accent"),
    positive: colour("positive"),
    negative: colour("negative"),
    unsigned: colour("unsigned"),
    ring: colour("ring"),
    track: colour("track"),
    dark: isDark(),
  };
  return known;
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/**
 * Call a function whenever the colours change.
 * @param {() => void} listener
 */
export function onTheme(listener) {
  listeners.add(listener);
}

/** @param {string | undefined} theme */
function setTheme(theme) {
  if (theme === undefined) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  changed();
}

function changed() {
  known = null;
  for (const listener of listeners) listener();
}

/**
 * Make a button switch between light and dark; paper is always light.
 * @param {HTMLElement} switcher
 */
export function startThemes(switcher) {
  const say = () => {
    switcher.textContent = isDark() ? "Light" : "Dark";
    switcher.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} theme`);
  };
  switcher.addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  /** @type {string | undefined} */
  let before;
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    setTheme("light");
  });
  addEventListener("afterprint", () => setTheme(before));
  onTheme(say);
  say();
}
