import { roundUp } from "../calls/plot-shape.ts";
import type { Chart } from "./chart-of.ts";

/** Where things go in a drawing, in hundredths of its width and height. */
export interface Frame {
  readonly ticks: readonly number[];
  readonly x: (x: number) => number;
  readonly y: (value: number) => number;
}

/** Lays a chart out; bars start at zero, lines where the numbers do. */
export function frameOf({ points, kind }: Chart): Frame {
  const isBars = kind === "bars";
  const values = points.flatMap(({ values: all }) => all.filter((value) => value !== undefined));
  if (isBars) values.push(0);
  const ticks = roundTicks(Math.min(...values), Math.max(...values));
  const [low, high] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  const [from, to] = isBars ? [-0.5, points.length - 0.5] : [points[0]?.x ?? 0, points.at(-1)?.x ?? 1];
  return {
    ticks,
    x: (at) => part(at, from, to),
    y: (value) => 100 - part(value, low, high),
  };
}

/** Halves first, so that the widest ranges of numbers have a length too. */
function part(value: number, low: number, high: number): number {
  return high > low ? Math.round(((value / 2 - low / 2) / (high / 2 - low / 2)) * 1e4) / 100 : 50;
}

/** Chooses round numbers that span a range: 1, 2 or 5 times a power of ten apart. */
export function roundTicks(least: number, most: number): readonly number[] {
  const rough = (most - least) / 5;
  const step = roundUp(rough);
  const first = Math.floor(least / step);
  const count = Math.ceil(most / step) - first + 1;
  // A range that cannot be cut in parts: one number, or more than numbers can hold.
  if (!(count < 100 && step < Number.MAX_VALUE)) return [...new Set([least, most])];
  return Array.from({ length: count }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** The point nearest to a place in the drawing. */
export function nearestPoint({ points }: Chart, frame: Frame, place: number): number {
  const far = points.map(({ x }) => Math.abs(frame.x(x) - place));
  return far.indexOf(Math.min(...far));
}

/** The outline of one series: a line with a gap where a number is missing, or bars beside those of the others. */
export function pathOf({ points, kind, series }: Chart, frame: Frame, at: number): string {
  const slot = 75 / points.length;
  const width = slot / series.length;
  return points
    .map(({ x, values }, place) => {
      const value = values[at];
      if (value === undefined) return "";
      const [left, top] = [frame.x(x), frame.y(value)];
      if (kind === "line") return `${points[place - 1]?.values[at] === undefined ? "M" : "L"}${left} ${top}`;
      return `M${left - slot / 2 + at * width} ${frame.y(0)}V${top}h${width * 0.9}V${frame.y(0)}`;
    })
    .join("");
}
