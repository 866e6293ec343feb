"""A report of 300 columns and 2,000 edges, and a script that moves the pointer over it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mixedgm as mg

N_COLUMNS, N_EDGES = 300, 2000

FRAMES = """
const done = arguments[arguments.length - 1];
const stage = document.getElementById('stage');
const box = stage.getBoundingClientRect();
const move = arguments[0];
const send = (type, x, y, more = {}) => stage.dispatchEvent(new PointerEvent(type,
  {clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true, ...more}));
stage.setPointerCapture = () => {};
stage.focus();
let [x, y] = [box.width / 2, box.height / 2];
if (move === 'drag') send('pointerdown', x, y);
const times = [];
let frame = 0;
const step = (now) => {
  times.push(now);
  if (frame++ >= 60) {
    if (move === 'drag') send('pointerup', x, y);
    done(times.slice(1).map((time, k) => time - times[k]).slice(5));
    return;
  }
  const turn = frame / 6;
  [x, y] = [box.width / 2 + 150 * Math.cos(turn), box.height / 2 + 100 * Math.sin(turn)];
  if (move === 'wheel') stage.dispatchEvent(new WheelEvent('wheel', {deltaY: 40 * Math.sin(turn),
    clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true}));
  else send('pointermove', x, y);
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""
"""Given a kind of movement ("hover", "drag", "wheel"): milliseconds of 55 frames."""


def write_wide_report(file: Path) -> None:
    """Write the report of a model with random edges."""
    rng = np.random.default_rng(0)
    precision = np.zeros((N_COLUMNS, N_COLUMNS))
    pairs = rng.permutation(np.array(np.triu_indices(N_COLUMNS, 1)).T)[:N_EDGES]
    sizes = rng.choice([-1.0, 1.0], N_EDGES) * rng.uniform(0.1, 1.0, N_EDGES)
    precision[pairs[:, 0], pairs[:, 1]] = sizes
    precision += precision.T
    precision += np.diag(1.0 + np.abs(precision).sum(axis=1))
    columns = {f"column {k}": "continuous" for k in range(N_COLUMNS)}
    mg.from_params(columns, {"precision": precision}).report(file)
