import { useState } from "preact/hooks";
import type { OperationView } from "../../protocol.ts";
import { shortJson } from "../parts/json-text.ts";
import { counted, showTime } from "../parts/show.ts";
import { ResultPanel } from "../result/result-panel.tsx";
import type { RunRecord, RunValue } from "./run-record.ts";

/** What a call answered: its result, or the values of a subscription, the newest first, of which one is shown whole. */
export function ValuesPanel({
  run,
  operation,
}: {
  readonly run: RunRecord;
  readonly operation: OperationView;
}) {
  const [pinned, setPinned] = useState<RunValue>();
  const shown = pinned ?? run.values.at(-1);
  if (shown === undefined) {
    return run.status === "done" ? <p class="notice">The call ended without a result.</p> : null;
  }
  const whole = <ValueView value={shown} run={run} operation={operation} />;
  if (operation.type !== "subscription") return whole;
  const choose = (position: number): void =>
    setPinned(run.values.find((value) => value.position === position));
  return (
    <>
      <div class="row">
        {counted(run.received, "value")}
        {run.received > run.values.length && `, the last ${run.values.length} are kept`}
        {pinned !== undefined && (
          <button type="button" onClick={() => setPinned(undefined)}>
            Follow the newest
          </button>
        )}
      </div>
      <select
        class="values mono"
        size={8}
        aria-label="Values, the newest first"
        value={shown.position}
        onChange={({ currentTarget }) => choose(Number(currentTarget.value))}
      >
        {[...run.values].reverse().map(({ position, at, result, tooLong }) => (
          <option key={position} value={position}>
            {position} · {showTime(at)} ·{" "}
            {result
              ? shortJson(result.envelope.data, 160)
              : tooLong === undefined
                ? "not JSON"
                : `too long (${tooLong})`}
          </option>
        ))}
      </select>
      <section class="stack" aria-label={`Value ${shown.position}`}>
        <h3>Value {shown.position}</h3>
        {whole}
      </section>
    </>
  );
}

function ValueView({
  value: { result, tooLong },
  run: { input },
  operation,
}: {
  readonly value: RunValue;
  readonly run: RunRecord;
  readonly operation: OperationView;
}) {
  return result === undefined ? (
    <p class="notice warn">
      {tooLong === undefined
        ? "The answer cannot be written as JSON."
        : `The result has ${counted(tooLong, "character")}, too many for this page. Ask for less, or call it from the command line.`}
    </p>
  ) : (
    <ResultPanel result={result} operation={operation} input={input} />
  );
}
