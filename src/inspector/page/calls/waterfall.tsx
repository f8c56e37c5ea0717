import type { CallRow } from "../../protocol.ts";
import { MoreList } from "../parts/more-list.tsx";
import { counted, showMs } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { toHash } from "../router.ts";
import { marksOf, OUTCOMES, standingOf, timeOf } from "./call-words.ts";
import { type Hop, layOutFamily } from "./lay-out-family.ts";

const MOST_INDENTS = 8;

/** A family of calls over time: who called whom, how long each took, and in which source. */
export function Waterfall(props: {
  readonly family: readonly CallRow[];
  readonly chosen: number;
  readonly now: number;
}) {
  const { family, chosen, now } = props;
  const { hops, spanMs } = layOutFamily(family, now);
  return (
    <section class="card stack waterfall" aria-label="Waterfall">
      <h3>
        Waterfall{" "}
        <span class="soft small">
          {counted(hops.length, "call")} in {showMs(spanMs)}
        </span>
      </h3>
      <MoreList
        label="Calls of this family"
        items={hops}
        first={100}
        draw={(hop) => <HopLink hop={hop} isChosen={hop.row.seq === chosen} now={now} />}
      />
    </section>
  );
}

function HopLink(props: { readonly hop: Hop; readonly isChosen: boolean; readonly now: number }) {
  const { row, depth, left, width, waited } = props.hop;
  const { word, sign, tone } = OUTCOMES[standingOf(row)];
  return (
    <a href={toHash("calls", row.seq)} aria-current={props.isChosen} class={tone}>
      <span class="cut" style={{ paddingLeft: `${Math.min(depth, MOST_INDENTS)}rem` }}>
        <span class="hidden-text">
          Level {depth + 1}, {word}:
        </span>
        <span class="sign" aria-hidden="true">
          {sign}
        </span>{" "}
        <bdi class="mono">{visibleText(row.operation, 200)}</bdi>{" "}
        <bdi class="soft">{visibleText(row.source ?? "", 60)}</bdi>
      </span>
      <span class="track">
        <span class="hop" style={{ left: percent(left), width: percent(width) }}>
          {waited > 0 && <span class="waited" style={{ width: percent(waited / width) }} />}
        </span>
      </span>
      <span class="numbers" title={marksOf(row)}>
        {timeOf(row, props.now)}
      </span>
    </a>
  );
}

function percent(share: number): string {
  return `${(100 * share).toFixed(3)}%`;
}
