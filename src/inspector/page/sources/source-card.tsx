import { useState } from "preact/hooks";
import type { SourceView } from "../../protocol.ts";
import { useWorkspace } from "../operations/workspace.ts";
import { Badge } from "../parts/badge.tsx";
import { Facts } from "../parts/facts.tsx";
import { MoreList } from "../parts/more-list.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { isWebAddress, SafeLink } from "../parts/safe-link.tsx";
import { counted, showMs, showSomeMs } from "../parts/show.ts";
import { toHash } from "../router.ts";
import { toApiError, useNow, usePassing, useSession } from "../session.ts";
import { LockPanel } from "./lock-panel.tsx";
import { errorWords, KIND_WORDS, retryWord, STATES, stateWords } from "./source-words.ts";

interface CardProps {
  readonly source: SourceView;
  readonly id: string;
  readonly onRetried: () => void;
}

/** All that is known of a source. */
export function SourceCard({ source, id, onRetried }: CardProps) {
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
            ["Target", isWebAddress(target ?? "") ? <SafeLink address={target ?? ""} /> : target],
            ["Calls itself", `${title} ${version}`.trim()],
            ["MCP revision", protocol],
            ["Started in", startMs === undefined ? "" : showMs(startMs)],
          ]}
        />
      </div>
      {lock !== undefined && <LockPanel lock={lock} name={name} isUp={state.status === "up"} />}
      <NamedTexts
        title={`${unusable.length.toLocaleString("en")} could not be imported`}
        items={unusable.map((each) => [each.name, each.reason])}
        isOpen
      />
      <NamedTexts
        title={`${counted(notes.length, "note")} on what was imported`}
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

/** Tries a source at once, and says how long that took. */
function RetryButton({ source, onDone }: { readonly source: SourceView; readonly onDone: () => void }) {
  const { api, say } = useSession();
  const [isBusy, setBusy] = useState(false);
  const [said, setSaid] = usePassing(SAID_MS);
  const word = retryWord(source);
  if (word === undefined) return null;
  const retry = async (): Promise<void> => {
    if (isBusy) return;
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
      <span class="soft small break">{said}</span>
      <button type="button" class="small" onClick={retry} aria-disabled={isBusy}>
        {isBusy && <span class="spinner" aria-hidden="true" />}
        {word}
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
    ["p50", showSomeMs(calls.p50)],
    ["p95", showSomeMs(calls.p95)],
  ] as const;
  return <Facts facts={facts} />;
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
