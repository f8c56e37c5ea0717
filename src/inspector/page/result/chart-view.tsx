import { useMemo, useState } from "preact/hooks";
import { roundUp } from "../calls/plot-shape.ts";
import { visibleText } from "../parts/show.ts";
import { type Rows, rowsOf } from "./table-view.tsx";

const MOST_NAMES = 12;

/** Numbers as lines over time, or as bars; what is at a point is told when it is pointed at or reached by arrow keys. */
export function ChartView({ chart }: { readonly chart: Chart }) {
  const { points, series } = chart;
  const last = points.length - 1;
  const [wanted, setAt] = useState(last);
  const at = Math.min(wanted, last);
  const point = points[at];
  const told = series.map((name, each) => {
    const value = point?.values[each];
    return [visibleText(name, 40), value === undefined ? "–" : showNumber(value)] as const;
  });
  const said = `${point?.name}: ${told.map((pair) => pair.join(" ")).join(", ")}`;
  const summary = useMemo(() => chartSummary(chart), [chart]);
  return (
    <figure class="chart stack tight">
      <div class="row small">
        <strong>{point?.name}</strong>
        {told.map(([name, value], each) => (
          <span key={each}>
            <svg width="22" height="10" aria-hidden="true">
              <path class={`line s${each}`} d="M1 5H21" />
            </svg>{" "}
            <bdi>{name}</bdi> <strong>{value}</strong>
          </span>
        ))}
      </div>
      <Drawing chart={chart} at={at} said={said} onPoint={setAt} />
      <figcaption class="soft small">{summary}</figcaption>
    </figure>
  );
}

function Drawing({
  chart,
  at,
  said,
  onPoint,
}: {
  readonly chart: Chart;
  readonly at: number;
  /** What is at the point, in words. */
  readonly said: string;
  readonly onPoint: (at: number) => void;
}) {
  const { kind, points } = chart;
  const last = points.length - 1;
  const frame = useMemo(() => frameOf(chart), [chart]);
  const paths = useMemo(() => chart.series.map((_, each) => pathOf(chart, frame, each)), [frame]);
  const follow = ({ offsetX, currentTarget }: PointerEvent): void =>
    onPoint(nearestPoint(chart, frame, (offsetX / (currentTarget as HTMLElement).clientWidth) * 100));
  const labels = frame.ticks.map(showNumber);
  return (
    <div class="plot">
      <div class="ticks soft" style={{ width: `${Math.max(...labels.map(({ length }) => length))}ch` }}>
        {labels.map((label, each) => (
          <span key={each} style={{ top: `${frame.y(frame.ticks[each] ?? 0)}%` }}>
            {label}
          </span>
        ))}
      </div>
      <div class="grow pointed-at" onPointerMove={follow}>
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
          <path d={frame.ticks.map((tick) => `M0 ${frame.y(tick)}H100`).join("")} />
          <path class="here" d={`M${frame.x(points[at]?.x ?? 0)} 0V100`} />
          {paths.map((path, each) => (
            <path key={each} class={`${kind} s${each}`} d={path} />
          ))}
        </svg>
        <input
          type="range"
          aria-label="Point of the chart"
          aria-valuetext={said}
          max={last}
          value={at}
          onInput={(event) => onPoint(Number(event.currentTarget.value))}
        />
        <div class={`names of-${kind} soft small`}>
          {points
            .filter((_, place) => place % last === 0 || (kind === "bars" && last < MOST_NAMES))
            .map(({ name }, place) => (
              <span class="cut" key={place}>
                {name}
              </span>
            ))}
        </div>
      </div>
    </div>
  );
}

/** Where things go in a drawing, in hundredths of its width and height. */
interface Frame {
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
interface ChartPoint {
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
function showNumber(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumSignificantDigits: 9 });
}
