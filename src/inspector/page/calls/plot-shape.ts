import type { Summary } from "./call-buckets.ts";

/** The scales of the plot. */
export interface PlotScale {
  /** What the height of the bars stands for: a round number that none is above. */
  readonly most: number;
  /** Powers of ten in milliseconds, lowest and highest of the latency axis. */
  readonly decades: readonly [number, number];
}

/** Makes scales that hold all bars. */
export function scaleOf(bars: readonly Summary[]): PlotScale {
  const powers = bars
    .flatMap(({ p50, p95 }) => (p50 === undefined || p95 === undefined ? [] : [p50, p95]))
    .map(powerOf);
  return {
    most: roundUp(Math.max(1, ...bars.map(({ calls }) => calls))),
    decades: [Math.floor(Math.min(0, ...powers)), Math.ceil(Math.max(2, ...powers))],
  };
}

/** The next of 1, 2, 5, 10, 20, 50 and so on. */
export function roundUp(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * ([1, 2, 5].find((factor) => factor * unit >= value) ?? 10);
}

/** Where a duration stands on the latency axis, from 0 at the bottom to 1 at the top. */
export function latencyHeight(ms: number, [low, high]: PlotScale["decades"]): number {
  return (powerOf(ms) - low) / (high - low);
}

/** Durations are drawn from 0.1 ms to almost three hours; what is beyond stands at the edge. */
function powerOf(ms: number): number {
  return Math.log10(Math.min(1e7, Math.max(0.1, ms)));
}
