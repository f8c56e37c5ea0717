import { useEffect, useRef, useState } from "preact/hooks";
import type { AnswerRequest, CallFailure, OperationView, RunQuestion } from "../../protocol.ts";
import { membersIn } from "../form/form-json.ts";
import { initialValue } from "../form/initial-value.ts";
import { InputEditor } from "../form/input-editor.tsx";
import { toApiError, useNow } from "../page-session.ts";
import { Badge, Empty, type Tone } from "../parts/controls.tsx";
import { PlainText, SafeLink } from "../parts/plain-text.tsx";
import { showCount, showMs, showTime, visibleText } from "../parts/show.ts";
import { shortJson } from "../parts/show-json.ts";
import { CopyAs } from "../result/copy-as.tsx";
import { FailurePanel, ResultPanel } from "../result/result-panel.tsx";
import { toHash } from "../router.ts";
import { failureIssues, type OperationDesk } from "./operation-desk.ts";
import type { RunProgress, RunRecord, RunValue } from "./run-record.ts";

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
      {run.failure !== undefined && <FailurePanel error={run.failure} durationMs={run.durationMs} />}
      {run.failure !== undefined && !hasResult(run) && <CopyAs operation={operation} input={run.input} />}
      <ValuesPanel run={run} operation={operation} />
      {run.seq !== undefined && (
        <p class="small">
          <a href={toHash("calls", run.seq)}>Show in Calls</a>
        </p>
      )}
    </>
  );
}

const TONES = { running: "accent", done: "ok", failed: "bad", cancelled: "plain" } as const;

/** Tells whether the last value is shown whole, with what came of it. */
function hasResult({ values }: RunRecord): boolean {
  return values.at(-1)?.result !== undefined;
}

function StatusLine({ run, isStream }: { readonly run: RunRecord; readonly isStream: boolean }) {
  // The result says the rest itself, and so does a failure.
  const isSaid = run.failure !== undefined || (run.status === "done" && hasResult(run));
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
        run.failure === undefined && (isStream || !isSaid) && showMs(run.durationMs)
      )}
    </div>
  );
}

function Elapsed({ since }: { readonly since: number }) {
  return <>{showMs(Math.max(0, useNow(100) - since))}</>;
}

function ProgressLine({ progress: { done = 0, total, message = "" } }: { readonly progress: RunProgress }) {
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
        Log <span class="soft small">{showCount(logs.length + earlierLogs, "line")}</span>
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
      <section class="log-box small" tabIndex={0} aria-label="Log of the call">
        {earlierLogs > 0 && <p class="soft">{showCount(earlierLogs, "earlier line")} not kept</p>}
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

/** What a call answered: its result, or the values of a subscription, the newest first, of which one is shown whole. */
function ValuesPanel({ run, operation }: { readonly run: RunRecord; readonly operation: OperationView }) {
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
        {showCount(run.received, "value")}
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
        : `The result has ${showCount(tooLong, "character")}, too many for this page. Ask for less, or call it from the command line.`}
    </p>
  ) : (
    <ResultPanel result={result} operation={operation} input={input} />
  );
}

type Answer = Pick<AnswerRequest, "action" | "content">;

const ANSWERS = [
  ["accept", "Accept", "primary"],
  ["decline", "Decline", ""],
  ["cancel", "Dismiss", "quiet"],
] as const;

/** A question that an operation asks while it runs. */
function QuestionCard({
  question,
  operation,
  onAnswer,
}: {
  readonly question: RunQuestion;
  readonly operation: string;
  readonly onAnswer: (answer: Answer) => Promise<void>;
}) {
  const { value, setValue, unread, setUnread, isSent, failure, send } = useAnswer(question, onAnswer);
  return (
    <section class="card stack question" aria-label="Question of the operation">
      <h3 class="break">{visibleText(operation, 200)} asks</h3>
      <RichText text={question.message} />
      {question.mode === "url" ? (
        <p>
          If you trust the operation, visit{" "}
          <SafeLink address={question.url} text={visibleText(question.url, 2_000)} />, then accept.
        </p>
      ) : (
        <InputEditor
          schema={question.schema}
          value={value}
          onChange={setValue}
          onInvalid={setUnread}
          issues={failure === undefined ? [] : failureIssues(failure)}
          label="Answer"
          onRun={() => send("accept")}
        />
      )}
      {failure !== undefined && (
        <p class="notice bad" role="alert">
          {visibleText(failure.message, 1_000)}
        </p>
      )}
      <div class="row">
        {ANSWERS.map(([action, label, look]) => (
          <button
            type="button"
            key={action}
            class={look}
            disabled={isSent || (action === "accept" && unread !== undefined)}
            onClick={() => send(action)}
          >
            {label}
          </button>
        ))}
      </div>
    </section>
  );
}

/** An answer as it is filled in and sent; a refused one can be sent again. */
function useAnswer(question: RunQuestion, onAnswer: (answer: Answer) => Promise<void>) {
  const [value, setValue] = useState(() =>
    question.mode === "form" ? initialValue(question.schema) : undefined,
  );
  const [unread, setUnread] = useState<string>();
  const [isSent, setSent] = useState(false);
  const [failure, setFailure] = useState<CallFailure>();
  const send = (action: AnswerRequest["action"]): void => {
    const isAccepted = action === "accept";
    if (isSent || (isAccepted && unread !== undefined)) return;
    setSent(true);
    // Answers are objects; anything else has nothing to say.
    const content = membersIn(value);
    onAnswer({ action, ...(isAccepted && question.mode === "form" && { content }) }).catch(
      (thrown: unknown) => {
        setFailure(toApiError(thrown).failure);
        setSent(false);
      },
    );
  };
  return { value, setValue, unread, setUnread, isSent, failure, send };
}

/** A text in which http(s) addresses are links and nothing else is anything. */
function RichText(props: {
  readonly text: string;
  /** Characters that are shown at first. @default 2,000 */
  readonly most?: number;
}) {
  return (
    <div class="rich-text">
      <PlainText {...props} hasLinks />
    </div>
  );
}
