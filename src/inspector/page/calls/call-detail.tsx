import { useEffect, useRef } from "preact/hooks";
import type { CallRow, CallView } from "../../protocol.ts";
import { openWithInput } from "../operations/open-with-input.ts";
import { Facts } from "../parts/facts.tsx";
import { JsonTree } from "../parts/json-tree.tsx";
import { Pending } from "../parts/notice.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showTime } from "../parts/show.ts";
import { saveFile } from "../result/save-file.ts";
import { toHash } from "../router.ts";
import { useAsked, useSession } from "../session.ts";
import { historyOf } from "./call-history.ts";
import { OutcomeBadge } from "./call-list.tsx";
import { CallResults } from "./call-results.tsx";
import { ENTRIES, marksOf, OMITTED, timeOf } from "./call-words.ts";
import { fixtureName, toFixture } from "./to-fixture.ts";
import { Waterfall } from "./waterfall.tsx";
import { withoutMasked } from "./without-masked.ts";

const AGAIN_MS = 2_000;

/** One call, with all that is remembered of it. */
export function CallDetail({ seq }: { readonly seq: number }) {
  const { api, live } = useSession();
  const told = live.row(seq);
  const now = historyOf(live).clock();
  // Asked again for as long as it runs: what it called meanwhile is told by the gateway alone.
  const turn = told !== undefined && told.outcome === undefined && Math.floor(now / AGAIN_MS);
  const asked = useAsked((signal) => api.call(seq, signal), [api, seq, turn]);
  const view = asked.value;
  const row = told?.outcome === undefined ? (view?.row ?? told) : told;
  const family = view?.family.map((member) => (member.outcome ? member : (live.row(member.seq) ?? member)));
  return (
    <div class="call-detail stack">
      <Head seq={seq} row={row} />
      {row !== undefined && <CallFacts row={row} now={now} />}
      {family !== undefined && family.length > 1 && <Waterfall family={family} chosen={seq} now={now} />}
      {view !== undefined ? <Body view={view} /> : <Pending {...asked} what="the call" />}
    </div>
  );
}

function Head({ seq, row }: { readonly seq: number; readonly row: CallRow | undefined }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // Whoever came from a list that is out of sight, or from a call that is gone, goes on here.
    if (matchMedia("(max-width: 46rem)").matches || document.activeElement === document.body)
      heading.current?.focus();
  }, []);
  return (
    <div class="row">
      <h2 ref={heading} tabIndex={-1} class="mono break">
        {row === undefined ? `Call ${seq}` : <PlainText text={row.operation} most={200} />}
      </h2>
      {row !== undefined && <OutcomeBadge row={row} />}
      <span class="push" />
      <a class="small" href={toHash("calls")}>
        Back to the calls
      </a>
    </div>
  );
}

function CallFacts({ row, now }: { readonly row: CallRow; readonly now: number }) {
  const { startedAt, outcome, code, source, type, entry, subject = "Anonymous", requestId, parent } = row;
  return (
    <div class="card">
      <Facts
        facts={[
          ["Began", `${new Date(startedAt).toLocaleDateString("en-CA")} ${showTime(startedAt)}`],
          [outcome === undefined ? "Runs for" : "Took", timeOf(row, now)],
          ["Code", code],
          [
            "Source",
            source && <a href={toHash("sources", source)}>{<PlainText text={source} most={200} />}</a>,
          ],
          ["Kind", type],
          ["Way in", ENTRIES[entry ?? "none"]],
          ["Caller", subject],
          ["Request id", requestId],
          ["Made by", parent === undefined ? "" : <a href={toHash("calls", parent)}>call {parent}</a>],
          ["Marks", marksOf(row)],
        ]}
      />
    </div>
  );
}

function Body({ view }: { readonly view: CallView }) {
  const { api, live, say } = useSession();
  const { row, input } = view;
  const id = row.operation;
  const { value, error } = useAsked((signal) => api.operation(id, signal), [api, id, live.operations]);
  const open = (isWanted: boolean): void => {
    const given = withoutMasked(input);
    const isLost = "omitted" in input && input.omitted !== "none";
    const isRun = isWanted && given === input && !isLost;
    openWithInput({ operation: id, input: "value" in given ? given.value : undefined, isRun });
    if (isLost) say("The input was not kept: enter it again.");
    else if (given !== input) say("Secrets are not kept: fill them in, then run.");
  };
  return (
    <>
      <div class="row">
        <button type="button" class="primary" onClick={() => open(true)}>
          Run again
        </button>
        <button type="button" onClick={() => open(false)}>
          Open in Operations
        </button>
        <button
          type="button"
          onClick={() => saveFile(fixtureName(id), JSON.stringify(toFixture(view), null, 2))}
        >
          Export as fixture
        </button>
      </div>
      <section class="stack" aria-label="Input">
        <h3>Input</h3>
        {"omitted" in input ? (
          <p class="soft small">{OMITTED[input.omitted]}</p>
        ) : (
          <JsonTree value={input.value} label="Input" openDepth={2} />
        )}
      </section>
      <CallResults view={view} operation={error === undefined ? value : undefined} />
    </>
  );
}
