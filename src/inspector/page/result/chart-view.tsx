import { useMemo, useState } from "preact/hooks";
import { visibleText } from "../parts/visible-text.ts";
import { frameOf, nearestPoint, pathOf } from "./chart-frame.ts";
import { type Chart, chartSummary, showNumber } from "./chart-of.ts";

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
