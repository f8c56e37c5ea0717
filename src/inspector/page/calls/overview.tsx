import { Facts } from "../parts/facts.tsx";
import { showSomeMs } from "../parts/show.ts";
import { useSession } from "../session.ts";
import { STEP_MS, summarize } from "./call-buckets.ts";
import { historyOf } from "./call-history.ts";
import { Plot } from "./plot.tsx";

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
    ["Calls/s", rate.toLocaleString("en")],
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
