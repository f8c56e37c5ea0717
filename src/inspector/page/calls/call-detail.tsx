import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CallRow, CallView, EnvelopeView, KeptReason, OperationView } from "../../protocol.ts";
import { openWithInput } from "../operations/open-with-input.ts";
import { useAsked, useSession } from "../page-session.ts";
import { Facts, MoreList, PendingNotice } from "../parts/controls.tsx";
import { JsonTree } from "../parts/json-tree.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showCount, showMs, showTime, visibleText } from "../parts/show.ts";
import { lineJson } from "../parts/show-json.ts";
import { CopyAs, saveFile } from "../result/copy-as.tsx";
import { FailurePanel, ResultPanel } from "../result/result-panel.tsx";
import { toHash } from "../router.ts";
import { LogLines } from "../sources/source-log.tsx";
import { historyOf } from "./call-history.ts";
import { OutcomeBadge } from "./call-list.tsx";
import { ENTRIES, notesOf, OMITTED, OUTCOMES, sizesOf, standingOf, timeOf } from "./call-words.ts";

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
      {view !== undefined ? <Body view={view} /> : <PendingNotice {...asked} what="the call" />}
    </div>
  );
}

function Head({ seq, row }: { readonly seq: number; readonly row: CallRow | undefined }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // A reader who came from a list that is out of sight, or from a call that is gone, goes on here.
    if (matchMedia("(max-width: 46rem)").matches || document.activeElement === document.body)
      heading.current?.focus();
  }, []);
  return (
    <div class="row stay">
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
          ["Transport", ENTRIES[entry ?? "none"]],
          ["Caller", subject],
          ["Request id", <code key="id">{visibleText(requestId, 200)}</code>],
          ["Made by", parent === undefined ? "" : <a href={toHash("calls", parent)}>call {parent}</a>],
          ["Size", sizesOf(row)],
          ["Notes", notesOf(row)],
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
      <CallResults view={view} operation={error === undefined ? value : undefined} />
      <section class="stack" aria-label="Input">
        <h3>Input</h3>
        {"omitted" in input ? (
          <p class="soft small">{OMITTED[input.omitted]}</p>
        ) : (
          <JsonTree value={input.value} label="Input" openDepth={2} />
        )}
      </section>
      {view.messages !== undefined && (
        <section class="stack" aria-label="Messages">
          <h3>Messages (JSON-RPC)</h3>
          <LogLines lines={view.messages} label="Messages of the call, oldest first" />
        </section>
      )}
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
    </>
  );
}

/** What came out of a call: a result, the last values of a subscription, an error. */
function CallResults(props: { readonly view: CallView; readonly operation: OperationView | undefined }) {
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
      ) : undefined}
      {error !== undefined && <FailurePanel error={error} />}
      {!(shown !== undefined && "envelope" in shown) && operation !== undefined && given !== undefined && (
        <CopyAs operation={operation} input={given} />
      )}
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

const MOST_INDENTS = 8;

/** A family of calls over time: who called whom, how long each took, and in which source. */
function Waterfall(props: {
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
          {showCount(hops.length, "call")} in {showMs(spanMs)}
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
      <span class="numbers" title={notesOf(row)}>
        {timeOf(row, props.now)}
      </span>
    </a>
  );
}

function percent(share: number): string {
  return `${(100 * share).toFixed(3)}%`;
}

/** One call of a family, in its place; shares of the whole time, from 0 to 1. */
interface Hop {
  readonly row: CallRow;
  /** 0 for a call that nobody here made. */
  readonly depth: number;
  readonly left: number;
  readonly width: number;
  /** The part of `width`, at its beginning, in which it waited for its turn. */
  readonly waited: number;
}

/** A family of calls over time. */
interface FamilyLayout {
  /** Callers before what they called, in the order they began. */
  readonly hops: readonly Hop[];
  readonly spanMs: number;
}

/** Lays out a family given in the order its calls began; whose caller is not known stands at the top. */
export function layOutFamily(family: readonly CallRow[], now: number): FamilyLayout {
  const lengthOf = (row: CallRow): number => Math.max(0, row.durationMs ?? now - row.startedAt);
  const startedAt = family.reduce((least, row) => Math.min(least, row.startedAt), Number.POSITIVE_INFINITY);
  const endedAt = family.reduce((most, row) => Math.max(most, row.startedAt + lengthOf(row)), startedAt);
  const spanMs = Math.max(endedAt - startedAt, 0.001);
  const hops = inOrder(family).map(({ row, depth }): Hop => {
    const width = lengthOf(row) / spanMs;
    const waited = Math.min((row.waitedMs ?? 0) / spanMs, width);
    return { row, depth, left: (row.startedAt - startedAt) / spanMs, width, waited };
  });
  return { hops, spanMs };
}

type Placed = Pick<Hop, "row" | "depth">;

/** Without recursion: a family may be thousands of calls deep. */
function inOrder(family: readonly CallRow[]): readonly Placed[] {
  const children = new Map<number | undefined, CallRow[]>(family.map(({ seq }) => [seq, []]));
  const roots: CallRow[] = [];
  for (const row of family) (children.get(row.parent) ?? roots).push(row);
  const placed: Placed[] = [];
  const waiting = roots.toReversed().map((row): Placed => ({ row, depth: 0 }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    placed.push(next);
    const { row, depth } = next;
    for (const child of (children.get(row.seq) ?? []).toReversed())
      waiting.push({ row: child, depth: depth + 1 });
  }
  return placed;
}

/** A call as a file, for tests that want to know what came back; what is not there is left out when it is written. */
interface Fixture {
  readonly waybill: "fixture/1";
  /** When the call began, in ISO 8601. */
  readonly recordedAt: string;
  readonly operation: string;
  readonly input: unknown;
  /** Nothing while the call runs. */
  readonly outcome: string | undefined;
  readonly durationMs: number | undefined;
  readonly envelope: EnvelopeView | undefined;
  /** Of a subscription, in the order they came. */
  readonly envelopes: readonly EnvelopeView[] | undefined;
  readonly error: CallView["error"];
  /** What is missing, and why; nothing when all is there. */
  readonly omitted:
    | {
        readonly input: KeptReason | undefined;
        readonly envelopes: readonly KeptReason[] | undefined;
        readonly earlier: number | undefined;
      }
    | undefined;
}

/** Makes the fixture of a call, as far as the call is remembered. */
export function toFixture({ row, input, results, earlier, error }: CallView): Fixture {
  const { startedAt, operation, outcome, durationMs, type } = row;
  const envelopes = results.flatMap((result) => ("envelope" in result ? [result.envelope] : []));
  const missing = results.flatMap((result) => ("omitted" in result ? [result.omitted] : []));
  const isMany = type === "subscription" || results.length > 1;
  const lost = "omitted" in input && input.omitted !== "none" ? input.omitted : undefined;
  const isWhole = !(lost || missing.length || earlier);
  return {
    waybill: "fixture/1",
    recordedAt: new Date(startedAt).toISOString(),
    operation,
    input: "value" in input ? input.value : undefined,
    outcome,
    durationMs,
    envelope: isMany ? undefined : envelopes[0],
    envelopes: isMany ? envelopes : undefined,
    error,
    omitted: isWhole
      ? undefined
      : { input: lost, envelopes: missing.length ? missing : undefined, earlier: earlier || undefined },
  };
}

/** The name of its file; what a file system may not like is left out. */
export function fixtureName(operation: string): string {
  const name = operation.replace(/[^\w.-]+/g, "_").replace(/^\.+/, "");
  return `${name.slice(0, 100) || "call"}.fixture.json`;
}

/** What the gateway remembers in the place of a secret. */
const MASK = "•••";

/** Gives a remembered input without its secrets, what stands in their place would be taken for them; the very same where it has none. */
export function withoutMasked(
  input: CallView["input"],
): CallView["input"] | { readonly value?: unknown; readonly omitted?: never } {
  const json = lineJson(input);
  if (!json.includes(`"${MASK}"`)) return input;
  // A list without one of its items would be another list.
  return JSON.parse(json, (_, part: unknown) =>
    part === MASK || (Array.isArray(part) && part.includes(undefined)) ? undefined : part,
  );
}
