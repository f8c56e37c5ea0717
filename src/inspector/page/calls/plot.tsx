import { useState } from "preact/hooks";
import { useSession } from "../page-session.ts";
import { Facts } from "../parts/controls.tsx";
import { showCount, showMs, showSomeMs, showTime } from "../parts/show.ts";
import { BUCKETS, type Bucket, ENDED, STEP_MS, type Summary, summarize } from "./call-buckets.ts";
import { historyOf } from "./call-history.ts";
import { OUTCOMES, type RowOutcome } from "./call-words.ts";
import { latencyHeight, type PlotScale, scaleOf } from "./plot-shape.ts";

/** Pixels: how high each of the two parts is, where they end, and the whole. */
const PART = 56;
const BARS_END = 64;
const LINES_END = 134;
const HEIGHT = 140;

/** The plot of outcomes and latency; the pointer or arrow keys read it bar by bar. */
function Plot({ buckets, all }: { readonly buckets: readonly Bucket[]; readonly all: Summary }) {
  const [pointed, setPointed] = useState<number>();
  const bars = buckets.map((bucket) => summarize([bucket]));
  const scale = scaleOf(bars);
  const at = pointed ?? BUCKETS - 1;
  const said = `${showTime((buckets[at]?.slot ?? 0) * STEP_MS).slice(0, 8)}: ${sayCounts(bars[at] ?? all)}`;
  const point = ({ offsetX, currentTarget }: PointerEvent): void =>
    setPointed(Math.floor((offsetX / (currentTarget as HTMLElement).clientWidth) * BUCKETS));
  return (
    <div class="plot small">
      <svg class="axis" height={HEIGHT} aria-hidden="true">
        {ticksOf(scale).map(([y, text]) => (
          <text key={y} x="44" y={y + 4}>
            {text}
          </text>
        ))}
      </svg>
      <div class="plot-box pointed-at" onPointerMove={point} onPointerLeave={() => setPointed(undefined)}>
        <Drawing
          bars={bars}
          scale={scale}
          pointed={pointed}
          label={`The last 5 minutes: ${sayCounts(all)}`}
        />
        <input
          type="range"
          aria-label="Time in the plot"
          aria-valuetext={said}
          max={BUCKETS - 1}
          value={at}
          onInput={(event) => setPointed(Number(event.currentTarget.value))}
          onBlur={() => setPointed(undefined)}
        />
      </div>
      <p class="times" aria-hidden="true">
        {["−5 min", "−4", "−3", "−2", "−1", "now"].map((text) => (
          <span key={text}>{text}</span>
        ))}
      </p>
      <p class="legend" aria-hidden="true">
        {pointed === undefined
          ? KEYS.map(([tone, text]) => (
              <span key={text} class={tone}>
                {text}
              </span>
            ))
          : said}
      </p>
    </div>
  );
}

const KEYS = [
  ...ENDED.map((outcome) => [OUTCOMES[outcome].tone, OUTCOMES[outcome].word]),
  ["accent", "p50"],
  ["note", "p95"],
];

function Drawing(props: {
  readonly bars: readonly Summary[];
  readonly scale: PlotScale;
  readonly pointed: number | undefined;
  readonly label: string;
}) {
  const { bars, scale, pointed, label } = props;
  return (
    <svg viewBox={`0 0 ${BUCKETS} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <pattern id="calls-hatch" width="1" height="4" patternUnits="userSpaceOnUse">
        <path d="M0 0h1v2.5h-1z" />
      </pattern>
      <path
        class="rules"
        d={ticksOf(scale)
          .map(([y]) => `M0 ${y}H${BUCKETS}`)
          .join("")}
      />
      {pointed !== undefined && <path class="pointed" d={`M${pointed} 8h1V${LINES_END}h-1z`} />}
      {ENDED.map((outcome) => (
        <path key={outcome} class={OUTCOMES[outcome].tone} d={barsPath(bars, outcome, scale)} />
      ))}
      <path class="line note" d={linePath(bars, "p95", scale)} />
      <path class="line accent" d={linePath(bars, "p50", scale)} />
    </svg>
  );
}

/** The numbers beside the plot, with their height. */
function ticksOf({ most, decades }: PlotScale): readonly (readonly [number, string])[] {
  const [low, high] = decades;
  const every = Math.ceil((high - low) / 3);
  const ticks: [number, string][] = [
    [BARS_END - PART, most.toLocaleString("en")],
    [BARS_END, "0"],
  ];
  for (let power = low; power <= high; power += every)
    ticks.push([latencyY(10 ** power, decades), showMs(10 ** power)]);
  return ticks;
}

/** All bars of an outcome in one path. */
function barsPath(bars: readonly Summary[], outcome: RowOutcome, { most }: PlotScale): string {
  const below = ENDED.slice(0, ENDED.indexOf(outcome));
  return bars
    .map(({ counts }, index) => {
      if (counts[outcome] === 0) return "";
      const under = below.reduce((sum, one) => sum + counts[one], 0);
      const y = BARS_END - (under / most) * PART;
      // Even one among thousands is seen.
      const height = Math.max(1.5, (counts[outcome] / most) * PART);
      return `M${index + 0.1} ${y}h.8v-${height}h-.8z`;
    })
    .join("");
}

/** A line with gaps where nothing ended; whatever stands alone is a dot. */
function linePath(bars: readonly Summary[], name: "p50" | "p95", { decades }: PlotScale): string {
  return bars
    .map((bar, index) => {
      const ms = bar[name];
      if (ms === undefined) return "";
      const place = `${index + 0.5} ${latencyY(ms, decades).toFixed(1)}`;
      return bars[index - 1]?.[name] === undefined ? `M${place}h.01` : `L${place}`;
    })
    .join("");
}

function latencyY(ms: number, decades: PlotScale["decades"]): number {
  return LINES_END - PART * latencyHeight(ms, decades);
}

function sayCounts({ calls, counts, p50, p95 }: Summary): string {
  if (calls === 0) return "no calls";
  const parts = ENDED.filter((outcome) => counts[outcome] > 0).map(
    (outcome) => `${counts[outcome].toLocaleString("en")} ${OUTCOMES[outcome].word}`,
  );
  const took = p50 === undefined || p95 === undefined ? "" : `, p50 ${showMs(p50)}, p95 ${showMs(p95)}`;
  return `${showCount(calls, "call")} (${parts.join(", ")})${took}`;
}

/** How the calls of the last minutes went: figures and a plot. */
export function Overview() {
  const { live } = useSession();
  const history = historyOf(live);
  const buckets = history.buckets.until(history.clock());
  const all = summarize(buckets);
  const { calls, counts, p50, p95 } = all;
  const rate = (summarize(buckets.slice(-2, -1)).calls * 1_000) / STEP_MS;
  const figures = [
    ["Running", live.running.toLocaleString("en")],
    [`Calls/s (${STEP_MS / 1_000}\u00a0s)`, rate.toLocaleString("en")],
    [
      "Errors",
      calls === 0 ? "–" : ((counts.tool_error + counts.call_error) / calls).toLocaleString("en", PERCENT),
    ],
    ["p50", showSomeMs(p50)],
    ["p95", showSomeMs(p95)],
  ] as const;
  return (
    <section class="overview" aria-label="Calls over time">
      <Facts facts={figures} />
      <Plot buckets={buckets} all={all} />
    </section>
  );
}

const PERCENT = { style: "percent", maximumSignificantDigits: 2 } as const;
