// @ts-check

/**
 * @typedef {object} PageWatch
 * @property {number[]} tasks milliseconds of every task longer than 50 ms
 * @property {number[]} frames milliseconds between frames
 */

/** Runs in a page: writes down its long tasks and the time between its frames, from now on. */
export function watchPage() {
  const there = /** @type {{ watched?: PageWatch }} */ (/** @type {unknown} */ (window));
  /** @type {PageWatch} */
  const watched = { tasks: [], frames: [] };
  there.watched = watched;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) watched.tasks.push(duration);
  }).observe({ entryTypes: ["longtask"] });
  let last = performance.now();
  const frame = (/** @type {number} */ now) => {
    watched.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** Runs in a page: what was written down; both lists begin anew. */
export function readWatch() {
  const { watched } = /** @type {{ watched: PageWatch }} */ (/** @type {unknown} */ (window));
  const frames = watched.frames.splice(0).sort((a, b) => a - b);
  const tasks = watched.tasks.splice(0);
  return {
    longestTask: Math.max(0, ...tasks),
    frames: frames.length,
    p95Frame: frames[Math.floor(frames.length * 0.95)] ?? 0,
    longestFrame: frames.at(-1) ?? 0,
  };
}
