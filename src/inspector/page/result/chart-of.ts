import { visibleText } from "../parts/visible-text.ts";
import { type Rows, rowsOf } from "./rows-of.ts";

/** Numbers that can be drawn: one or several over time, over a list of names, or in their own order. */
export interface Chart {
  readonly kind: "line" | "bars";
  /** What the points are over. */
  readonly over: string;
  readonly series: readonly string[];
  readonly points: readonly ChartPoint[];
  /** How many there were before they were thinned out. */
  readonly count: number;
}

/** One place on the axis below, and the numbers there. */
export interface ChartPoint {
  readonly x: number;
  readonly name: string;
  readonly values: readonly (number | undefined)[];
}

const MOST_SERIES = 4;
const MOST_BARS = 40;
const MOST_POINTS = 2_000;

/** Finds what can be drawn in data; nothing where that would say little. */
export function chartOf(data: unknown): Chart | undefined {
  if (Array.isArray(data) && data.length > 1 && data.every(Number.isFinite)) {
    const points = data.map((value: number, at) => ({ x: at, name: `#${at}`, values: [value] }));
    return finished({ kind: "line", over: "place in the list", series: ["value"], points });
  }
  const rows = rowsOf(data);
  return rows && rowsChart(rows);
}

function rowsChart(rows: Rows): Chart | undefined {
  const kinds = rows.columns.map((name, column) => kindOf(valuesOf(rows, column), name));
  const isTime = kinds.includes("time");
  const overAt = kinds.indexOf(isTime ? "time" : "name");
  const numbers = kinds.flatMap((kind, at) => (kind === "number" ? [at] : []));
  if (overAt < 0 || numbers.length === 0 || numbers.length > MOST_SERIES) return undefined;
  if (!isTime && rows.count > MOST_BARS) return undefined;
  const columns = numbers.map((column) => valuesOf(rows, column));
  const points = valuesOf(rows, overAt)
    .map((at, row) => ({
      x: isTime ? timeOf(at) : row,
      name: typeof at === "number" ? new Date(timeOf(at)).toISOString() : visibleText(String(at), 60),
      values: columns.map((values) => (values[row] ?? undefined) as number | undefined),
    }))
    .sort((a, b) => a.x - b.x);
  if (points.length < 2) return undefined;
  const [over = "", ...series] = [overAt, ...numbers].map((column) => rows.columns[column] ?? "");
  return finished({ kind: isTime ? "line" : "bars", over, series, points });
}

function valuesOf(rows: Rows, column: number): readonly unknown[] {
  return Array.from({ length: rows.count }, (_, row) => rows.cell(row, column));
}

/** Columns of numbers with such names are moments, not amounts. */
const TIME_NAME = /(?:^|[_.-])(?:time|timestamp|date|ts|at|when|epoch)$|(?:Time|Timestamp|Date|At)$/;

/** A column is of one kind throughout; numbers may be missing here and there. */
function kindOf(values: readonly unknown[], name: string): "time" | "name" | "number" | undefined {
  const given = values.filter((value) => value !== undefined && value !== null);
  const areTimes = values.every((value) => !Number.isNaN(timeOf(value)));
  if (given.length > 0 && given.every(Number.isFinite)) {
    return areTimes && TIME_NAME.test(name) ? "time" : "number";
  }
  if (areTimes) return "time";
  return values.every((value) => typeof value === "string") ? "name" : undefined;
}

const ISO = /^\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?)?$/;

/** Reads an ISO date, or epoch seconds or milliseconds of this age, into milliseconds; anything else is `NaN`. */
function timeOf(value: unknown): number {
  if (typeof value === "string") return ISO.test(value) ? Date.parse(value) : Number.NaN;
  if (typeof value !== "number") return Number.NaN;
  const ms = value < 1e11 ? value * 1_000 : value;
  return ms > 6e11 && ms < 4e12 ? ms : Number.NaN;
}

function finished(chart: Omit<Chart, "count">): Chart {
  return { ...chart, count: chart.points.length, points: thinned(chart.points, chart.series) };
}

/** Keeps, of each stretch, the points where a series is lowest and highest: no peak gets lost. */
function thinned(points: readonly ChartPoint[], series: readonly string[]): readonly ChartPoint[] {
  if (points.length <= MOST_POINTS) return points;
  const size = Math.ceil((2 * series.length * points.length) / MOST_POINTS);
  const kept = new Set<ChartPoint>();
  for (let from = 0; from < points.length; from += size) {
    const stretch = points.slice(from, from + size);
    for (const at of series.keys()) {
      for (const sign of [1, -1]) {
        const height = ({ values }: ChartPoint): number => sign * (values[at] ?? -sign * Number.MAX_VALUE);
        kept.add(stretch.reduce((best, point) => (height(point) > height(best) ? point : best)));
      }
    }
  }
  return points.filter((point) => kept.has(point));
}

/** Says in words what a chart shows, for those who do not see it. */
export function chartSummary({ series, points, over, count }: Chart): string {
  const parts = series.map((name, at) => {
    const values = points.flatMap(({ values: all }) => all[at] ?? []);
    const [least, most] = [Math.min(...values), Math.max(...values)].map(showNumber);
    return `${visibleText(name, 40)} from ${least} to ${most}`;
  });
  const ends = `${points[0]?.name} to ${points.at(-1)?.name}`;
  return `${count.toLocaleString("en")} points over ${visibleText(over, 40)}, ${ends}: ${parts.join("; ")}.`;
}

/** Writes a number for people. */
export function showNumber(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumSignificantDigits: 9 });
}
