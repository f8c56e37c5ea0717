import { useEffect, useRef } from "preact/hooks";
import type { OperationView } from "../../protocol.ts";
import { Badge, type Tone } from "../parts/badge.tsx";
import { shortJson } from "../parts/json-text.ts";
import { Empty } from "../parts/notice.tsx";
import { counted, showMs } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { CopyAs } from "../result/copy-as.tsx";
import { FailurePanel } from "../result/failure-panel.tsx";
import { toHash } from "../router.ts";
import { useNow } from "../session.ts";
import type { OperationDesk } from "./operation-desk.ts";
import { QuestionCard } from "./question-card.tsx";
import type { Progress, RunRecord } from "./run-record.ts";
import { ValuesPanel } from "./values-panel.tsx";

const MOST_OPEN_QUESTIONS = 3;
const JUST_MS = 1_000;

/** What becomes of a call: how far it is, what it says and asks, and what it answered. */
export function RunOutput({ desk }: { readonly desk: OperationDesk }) {
  const { run, operation } = desk;
  const spoken = run?.questions.length ? "The operation asks a question." : run?.status;
  return (
    <>
      <p class="hidden-text" role="status">
        {spoken}
      </p>
      {run === undefined ? (
        <Empty title="Nothing has run yet.">
          <span>Fill in the input, then press Run.</span>
        </Empty>
      ) : (
        <Outcome key={run.startedAt} run={run} desk={desk} operation={operation} />
      )}
    </>
  );
}

function Outcome({
  run,
  desk,
  operation,
}: {
  readonly run: RunRecord;
  readonly desk: OperationDesk;
  readonly operation: OperationView;
}) {
  return (
    <>
      <StatusLine run={run} isStream={operation.type === "subscription"} />
      {run.status === "running" && run.progress !== undefined && <ProgressLine progress={run.progress} />}
      {run.questions.slice(0, MOST_OPEN_QUESTIONS).map(({ key, question }) => (
        <QuestionCard
          key={key}
          question={question}
          operation={operation.id}
          onAnswer={(answer) => desk.answer(key, answer)}
        />
      ))}
      {run.logs.length > 0 && <Logs run={run} />}
      {run.failure !== undefined && <FailurePanel error={run.failure} />}
      {run.failure !== undefined && !hasResult(run) && <CopyAs operation={operation} input={run.input} />}
      <ValuesPanel run={run} operation={operation} />
    </>
  );
}

const TONES = { running: "accent", done: "ok", failed: "bad", cancelled: "plain" } as const;

/** Tells whether the last value is shown whole, with what came of it. */
function hasResult({ values }: RunRecord): boolean {
  return values.at(-1)?.result !== undefined;
}

function StatusLine({ run, isStream }: { readonly run: RunRecord; readonly isStream: boolean }) {
  // The result says the rest itself.
  const isSaid = run.status === "done" && hasResult(run);
  const line = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // What has just begun below a long form is brought up; what is in sight stays where it is.
    const top = line.current?.getBoundingClientRect().top ?? 0;
    if (Date.now() - run.startedAt < JUST_MS && top > window.innerHeight / 2) line.current?.scrollIntoView();
  }, [run]);
  return (
    <div class="row small run-status" ref={line}>
      {!isSaid && <Badge tone={TONES[run.status]}>{run.status}</Badge>}
      {run.durationMs === undefined ? (
        <Elapsed since={run.startedAt} />
      ) : (
        (isStream || !isSaid) && showMs(run.durationMs)
      )}
      {run.seq !== undefined && <a href={toHash("calls", run.seq)}>Show in Calls</a>}
    </div>
  );
}

function Elapsed({ since }: { readonly since: number }) {
  return <>{showMs(Math.max(0, useNow(100) - since))}</>;
}

function ProgressLine({ progress: { done = 0, total, message = "" } }: { readonly progress: Progress }) {
  return (
    <div class="row small">
      <progress aria-label="Progress" {...(total !== undefined && { value: done, max: total })} />
      {total !== undefined && `${done} of ${total}`}
      <bdi class="break">{visibleText(message, 500)}</bdi>
    </div>
  );
}

function Logs({ run: { logs, earlierLogs } }: { readonly run: RunRecord }) {
  return (
    <details class="card" open>
      <summary>
        Log <span class="soft small">{counted(logs.length + earlierLogs, "line")}</span>
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
      <section class="log-box small" tabIndex={0} aria-label="Log of the call">
        {earlierLogs > 0 && <p class="soft">{counted(earlierLogs, "earlier line")} not kept</p>}
        {logs.map(({ key, level, message, data }) => (
          <p key={key}>
            <Badge tone={toneOf(level)}>{visibleText(level, 20)}</Badge>{" "}
            <bdi class="break">{visibleText(message, 2_000)}</bdi>
            {data !== undefined && <code class="soft break"> {shortJson(data, 500)}</code>}
          </p>
        ))}
      </section>
    </details>
  );
}

function toneOf(level: string): Tone {
  if (/^warn/.test(level)) return "warn";
  return /error|critical|alert|emergency/.test(level) ? "bad" : "plain";
}
