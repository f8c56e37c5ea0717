import "./sources.css";
import { useEffect, useState } from "preact/hooks";
import type { BusTraffic, SourceView } from "../../protocol.ts";
import { OUTCOMES } from "../calls/call-words.ts";
import { useWorkspace } from "../operations/workspace.ts";
import { toApiError, useNow, usePassing, useSession } from "../page-session.ts";
import { Badge, Empty, Facts, MoreList, PendingNotice } from "../parts/controls.tsx";
import { isSafeAddress, PlainText, SafeLink } from "../parts/plain-text.tsx";
import { showAgo, showBytes, showCount, showMs, showSomeMs, visibleText } from "../parts/show.ts";
import { toHash } from "../router.ts";
import { LockPanel } from "./lock-panel.tsx";
import { SourceLog } from "./source-log.tsx";
import {
  BUS_END_WORDS,
  errorWords,
  KIND_WORDS,
  retryWord,
  STATES,
  stateWords,
  summaryOf,
  useSources,
} from "./source-state.ts";

/** Cards that are drawn at first, and more on demand. */
const FIRST = 60;
/** Sources that the summary points to. */
const MOST_LINKS = 20;
/** More sources than this are a table. */
const MOST_CARDS = 6;
const MOST_ROWS = 500;

/** Where operations come from, and how each of these places is doing. */
export function SourcesView({ chosen }: { readonly chosen: string | undefined }) {
  const { hello } = useSession();
  const asked = useSources();
  const { value, again } = asked;
  const sources = value?.sources ?? [];
  const chosenAt = sources.findIndex(({ name }) => name === chosen);
  const first = Math.max(FIRST, chosenAt + 1);
  useEffect(() => focusCard(chosenAt), [chosenAt]);
  return (
    <div class="content stack sources">
      <PendingNotice {...asked} what="the sources" />
      {value !== undefined && sources.length === 0 && (
        <Empty title="There are no sources">
          {hello.isOperator
            ? "Add an MCP server, an OpenAPI document or modules to the config."
            : "You may call nothing here. Ask for access."}
        </Empty>
      )}
      {sources.length > 0 && (
        <>
          <Summary sources={sources} />
          {chosen !== undefined && chosenAt < 0 && (
            <p class="notice warn" role="status">
              <span>
                There is no source called <PlainText text={chosen} most={100} /> here.
              </span>
            </p>
          )}
          {sources.length > MOST_CARDS && <SourceTable sources={sources} chosen={chosen} onRetried={again} />}
          <MoreList
            // The chosen one is drawn, wherever it stands.
            key={first}
            first={first}
            label="Sources"
            items={sources.length > MOST_CARDS ? sources.filter(({ name }) => name === chosen) : sources}
            draw={(source) => (
              <SourceCard id={`source-${sources.indexOf(source)}`} source={source} onRetried={again} />
            )}
          />
        </>
      )}
      {value?.bus !== undefined && <BusCard traffic={value.bus} />}
    </div>
  );
}

const COLUMNS: readonly (readonly [title: string, kind?: "number"])[] = [
  ["Source"],
  ["State"],
  ["Kind"],
  ["Operations", "number"],
  ["Calls", "number"],
  ["Errors", "number"],
  ["p95", "number"],
  ["Last error"],
];

/** Sources in one line each; a name leads to all that is known of one. */
function SourceTable({
  sources,
  chosen,
  onRetried,
}: {
  readonly sources: readonly SourceView[];
  readonly chosen: string | undefined;
  readonly onRetried: () => void;
}) {
  const { isOperator } = useSession().hello;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard
    <section class="card scroll source-table" tabIndex={0} aria-label="Table of sources">
      <table class="data">
        <thead>
          <tr>
            {COLUMNS.map(([title, kind]) => (
              <th key={title} class={kind} scope="col">
                {title}
              </th>
            ))}
            {isOperator && (
              <th scope="col">
                <span class="hidden-text">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {sources.slice(0, MOST_ROWS).map((source) => {
            const { name, kind, state, operations, calls } = source;
            return (
              <tr key={name} aria-current={name === chosen ? "true" : undefined}>
                <th scope="row">
                  <a class="mono" href={toHash("sources", name)}>
                    {visibleText(name, 60)}
                  </a>
                </th>
                <td>
                  <StateLine state={state} />
                </td>
                <td class="nowrap">{KIND_WORDS[kind]}</td>
                <td class="number">{operations.toLocaleString("en")}</td>
                <td class="number">{calls.count.toLocaleString("en")}</td>
                <td class="number">{errorWords(calls)}</td>
                <td class="number">{showSomeMs(calls.p95)}</td>
                <td class="last-error">
                  {state.status === "down" ? (
                    <PlainText text={state.reason} most={160} />
                  ) : (
                    lastErrorOf(calls)
                  )}
                </td>
                {isOperator && (
                  <td>
                    <RetryButton source={source} onDone={onRetried} />
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
      {sources.length > MOST_ROWS && (
        <p class="soft small">
          The first {MOST_ROWS} of {sources.length.toLocaleString("en")}.
        </p>
      )}
    </section>
  );
}

/** What crossed the bus, each way. */
function BusCard({ traffic }: { readonly traffic: readonly BusTraffic[] }) {
  return (
    <article class="card stack" aria-labelledby="bus-traffic">
      <h3 id="bus-traffic">Bus traffic</h3>
      <div class="sides">
        {traffic.map(({ end, calls, errors, values, sentBytes, receivedBytes }) => (
          <section key={end} aria-label={BUS_END_WORDS[end]}>
            <p class="soft small">{BUS_END_WORDS[end]}</p>
            <Facts
              facts={[
                ["Calls", calls.toLocaleString("en")],
                ["Errors", errorWords({ count: calls, errors })],
                ["Stream values", values.toLocaleString("en")],
                ["Sent", showBytes(sentBytes)],
                ["Received", showBytes(receivedBytes)],
              ]}
            />
          </section>
        ))}
      </div>
    </article>
  );
}

function Summary({ sources }: { readonly sources: readonly SourceView[] }) {
  const links = (title: string, tone: string, isListed: (source: SourceView) => boolean) => {
    const listed = sources.filter(isListed);
    return (
      listed.length > 0 && (
        <p class="row">
          <strong class={`toned ${tone}`}>{title}:</strong>
          {listed.slice(0, MOST_LINKS).map((source) => (
            // Followed once more, the address stays what it is: the card is brought back all the same.
            <a
              key={source.name}
              href={toHash("sources", source.name)}
              onClick={() => focusCard(sources.indexOf(source))}
            >
              <PlainText text={source.name} most={60} />
            </a>
          ))}
          {listed.length > MOST_LINKS && `and ${listed.length - MOST_LINKS} more`}
        </p>
      )
    );
  };
  return (
    <header class="row">
      <h2>Sources</h2>
      <p>{summaryOf(sources)}</p>
      {links("Down", "bad", ({ state }) => state.status === "down")}
      {links("Not approved", "warn", ({ lock }) => (lock?.tools.length ?? 0) > 0)}
    </header>
  );
}

function focusCard(index: number): void {
  const card = document.getElementById(`source-${index}`);
  card?.scrollIntoView({ block: "start" });
  card?.focus({ preventScroll: true });
}

interface CardProps {
  readonly source: SourceView;
  readonly id: string;
  readonly onRetried: () => void;
}

/** All that is known of a source. */
function SourceCard({ source, id, onRetried }: CardProps) {
  const { isOperator } = useSession().hello;
  const { name, kind, state, unusable, notes, lock, target, protocol, startMs } = source;
  const { title = "", version = "" } = source;
  return (
    <article class={`card source stack ${state.status}`} id={id} tabIndex={-1} aria-labelledby={`${id}-name`}>
      <header class="row">
        <h3 class="mono" id={`${id}-name`}>
          <PlainText text={name} most={100} />
        </h3>
        <span class="soft small">{KIND_WORDS[kind]}</span>
        <StateLine state={state} />
        {isOperator && <RetryButton source={source} onDone={onRetried} />}
      </header>
      {state.status === "down" && (
        <p class="notice bad">
          <PlainText text={state.reason} most={600} />
        </p>
      )}
      <div class="sides">
        <Numbers source={source} />
        <Facts
          facts={[
            ["Target", isSafeAddress(target ?? "") ? <SafeLink address={target ?? ""} /> : target],
            ["Calls itself", `${title} ${version}`.trim()],
            ["MCP revision", protocol],
            ["Started in", startMs === undefined ? "" : showMs(startMs)],
          ]}
        />
      </div>
      {lock !== undefined && <LockPanel lock={lock} name={name} isUp={state.status === "up"} />}
      {isOperator && kind === "mcp" && <SourceLog name={name} />}
      <NamedTexts
        title={`${unusable.length.toLocaleString("en")} could not be imported`}
        items={unusable.map((each) => [each.name, each.reason])}
        isOpen
      />
      <NamedTexts
        title={`${showCount(notes.length, "note")} on what was imported`}
        items={notes.map((each) => [each.name, each.note])}
      />
    </article>
  );
}

function StateLine({ state }: Pick<SourceView, "state">) {
  const now = useNow(1_000);
  const [tone, sign] = STATES[state.status];
  return (
    <span class="row small soft">
      <Badge tone={tone} sign={sign}>
        {state.status}
      </Badge>
      {stateWords(state, now)}
    </span>
  );
}

const SAID_MS = 10_000;

/** Asks first where calls may be under way, then tries a source at once, and says how long that took. */
function RetryButton({ source, onDone }: { readonly source: SourceView; readonly onDone: () => void }) {
  const { api, say } = useSession();
  const [isBusy, setBusy] = useState(false);
  const [said, setSaid] = usePassing(SAID_MS);
  const word = retryWord(source);
  if (word === undefined) return null;
  const [isAsking, setAsking] = useState(false);
  const retry = async (): Promise<void> => {
    if (isBusy) return;
    if (!isAsking && source.kind === "mcp" && source.state.status === "up") {
      setAsking(true);
      return;
    }
    setAsking(false);
    setBusy(true);
    const message = await api.retry(source.name).then(
      ({ source: { state }, tookMs }) =>
        `${state.status === "up" ? "answered in" : `still ${state.status} after`} ${showMs(tookMs)}`,
      (thrown: unknown) => toApiError(thrown).message,
    );
    setBusy(false);
    setSaid(message);
    say(`${source.name}: ${message}`);
    onDone();
  };
  return (
    <div class="row retry">
      <span class="soft small break">
        {isAsking ? "It is connected to anew; calls under way have 10 s to end." : said}
      </span>
      {isAsking && (
        <button type="button" class="small quiet" onClick={() => setAsking(false)}>
          Cancel
        </button>
      )}
      <button type="button" class="small" onClick={retry} aria-disabled={isBusy}>
        {isBusy && <span class="spinner" aria-hidden="true" />}
        {isAsking ? `Yes, ${word.toLowerCase()}` : word}
        <span class="hidden-text"> {source.name}</span>
      </button>
    </div>
  );
}

function Numbers({ source: { name, operations, calls } }: { readonly source: SourceView }) {
  const workspace = useWorkspace();
  /** Leads to the operations of this source alone. */
  const narrow = (): void => {
    workspace.narrowing = { query: "", source: name };
  };
  const link = (
    <a href={toHash("operations")} onClick={narrow}>
      {operations.toLocaleString("en")}
      <span class="hidden-text"> operations of {name}</span>
    </a>
  );
  const facts = [
    ["Operations", operations === 0 ? "0" : link],
    ["Calls", calls.count.toLocaleString("en")],
    ["Errors", errorWords(calls)],
    ["Last error", lastErrorOf(calls)],
    ["p50", showSomeMs(calls.p50)],
    ["p95", showSomeMs(calls.p95)],
  ] as const;
  return <Facts facts={facts} />;
}

/** The last call that failed, with the way to it. */
function lastErrorOf({ lastError }: SourceView["calls"]) {
  if (lastError === undefined) return undefined;
  const { seq, code, at } = lastError;
  return (
    <a class="break" href={toHash("calls", seq)}>
      {visibleText(code === "tool_error" ? OUTCOMES.tool_error.word : code, 60)}, {showAgo(at)}
    </a>
  );
}

function NamedTexts({
  title,
  items,
  isOpen = false,
}: {
  readonly title: string;
  readonly items: readonly (readonly [name: string, text: string])[];
  /** @default false */
  readonly isOpen?: boolean;
}) {
  if (items.length === 0) return null;
  return (
    <details open={isOpen}>
      <summary>{title}</summary>
      <MoreList
        label={title}
        items={items}
        draw={([name, text]) => (
          <>
            <code>
              <PlainText text={name} most={200} />
            </code>{" "}
            <PlainText text={text} most={1_000} />
          </>
        )}
      />
    </details>
  );
}
