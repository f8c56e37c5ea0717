import { useMemo, useState } from "preact/hooks";
import type { CallView, OperationView } from "../../protocol.ts";
import { JsonTree } from "../parts/json-tree.tsx";
import { CopyAs } from "../result/copy-as.tsx";
import { FailurePanel } from "../result/failure-panel.tsx";
import { ResultPanel } from "../result/result-panel.tsx";
import { OMITTED } from "./call-words.ts";
import { withoutMasked } from "./without-masked.ts";

/** What came out of a call: a result, the last values of a subscription, an error. */
export function CallResults(props: {
  readonly view: CallView;
  readonly operation: OperationView | undefined;
}) {
  const { view, operation } = props;
  const { row, results, error, raw, input, earlier } = view;
  const [place, setPlace] = useState<number>();
  const at = place ?? results.length - 1;
  const shown = results[at];
  const again = useMemo(() => withoutMasked(input), [input]);
  const given = "value" in again ? { value: again.value } : undefined;
  return (
    <section class="stack" aria-label="What came back">
      <h3>Result</h3>
      {earlier + results.length > 1 && (
        <label class="row small">
          Value
          <select value={String(at)} onChange={({ currentTarget }) => setPlace(Number(currentTarget.value))}>
            {results.map((_, index) => (
              <option key={index} value={String(index)}>
                {earlier + index + 1}
              </option>
            ))}
          </select>
          of {earlier + results.length}; the last ones are kept
        </label>
      )}
      {shown !== undefined && "envelope" in shown ? (
        <ResultPanel key={at} result={shown} operation={operation} input={given} />
      ) : (
        operation !== undefined && given !== undefined && <CopyAs operation={operation} input={given} />
      )}
      {error !== undefined && <FailurePanel error={error} />}
      {raw !== undefined &&
        ("value" in raw ? (
          <JsonTree value={raw.value} label="Raw answer" />
        ) : (
          <p class="soft small">Raw answer: {OMITTED[raw.omitted]}</p>
        ))}
      {shown !== undefined && "omitted" in shown && <p class="soft small">{OMITTED[shown.omitted]}</p>}
      {shown === undefined && error === undefined && (
        <p class="soft small">
          {row.outcome === undefined ? "Nothing came back yet." : "Nothing came back."}
        </p>
      )}
    </section>
  );
}
