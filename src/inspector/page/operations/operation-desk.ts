import { Listeners } from "../../../core/collections/listeners.ts";
import type { AnswerRequest, CallFailure, IssueView, OperationView, RunRequest } from "../../protocol.ts";
import { type Api, UNREACHABLE } from "../connection/api.ts";
import { listIn, ownOf } from "../form/form-json.ts";
import { initialValue } from "../form/initial-value.ts";
import { toApiError } from "../page-session.ts";
import type { InputHistory } from "./input-history.ts";
import { beginRun, endRun, type RunRecord, takeEvent } from "./run-record.ts";
import type { KeptInput } from "./without-secrets.ts";

const VALIDATE_AFTER_MS = 400;
/** Events may come by the thousand; they are shown a few times a second, so that they can be read. */
const SHOW_EVERY_MS = 100;

/** What a desk works with. */
export interface DeskOptions {
  readonly api: Api;
  readonly history: InputHistory;
  /** What was typed before the page was loaded anew. */
  readonly drafts: InputHistory;
}

/** One operation being tried: its input, what is wrong with it, and the call. It goes on while something else is shown. */
export class OperationDesk {
  readonly #with: DeskOptions;
  readonly #listeners = new Listeners();
  #stop = new AbortController();
  #recheck: ReturnType<typeof setTimeout> | undefined;
  #show: ReturnType<typeof setTimeout> | undefined;
  operation: OperationView;
  value: unknown;
  /** What was typed before the page was loaded anew, until it is changed or run. */
  restored: KeptInput | undefined;
  /** Counts editors: another one begins without what was typed into this one. */
  turn = 0;
  /** Why the text of the input cannot be read, while that is so. */
  unread: string | undefined;
  issues: readonly IssueView[] = [];
  /** Whether the last try was held back by issues. */
  isHeldBack = false;
  isChecking = false;
  isConfirming = false;
  wasTried = false;
  run: RunRecord | undefined;
  /** The part of the detail that is shown. */
  tab = "run";

  constructor(operation: OperationView, options: DeskOptions) {
    this.operation = operation;
    this.#with = options;
    const draft = options.drafts.last(operation.id);
    this.value = draft === undefined ? initialValue(operation.inputSchema) : draft.value;
    this.restored = draft;
  }

  get isRunning(): boolean {
    return this.run?.status === "running";
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Changes what is shown. */
  set(change: Partial<OperationDesk>): void {
    Object.assign(this, change);
    clearTimeout(this.#show);
    this.#show = undefined;
    this.#listeners.tell();
  }

  /** Takes over what was typed. */
  edit(value: unknown): void {
    clearTimeout(this.#recheck);
    if (this.wasTried) this.#recheck = setTimeout(() => void this.#checkAgain(), VALIDATE_AFTER_MS);
    this.set({ value, restored: undefined, isConfirming: false, isHeldBack: false });
  }

  /** Puts another input in the place of what was typed. */
  replace(value: unknown): void {
    // What was typed and is no input goes with the editor it was typed into.
    if (this.unread !== undefined) this.turn += 1;
    this.wasTried = false;
    this.issues = [];
    this.edit(value);
  }

  /** Runs the operation, once its input fits and, where it is destructive, somebody has said yes. */
  async start({ anyway = false, isConfirmed = false } = {}): Promise<void> {
    if (this.isRunning || this.isChecking || this.unread !== undefined) return;
    this.set({ isHeldBack: false, isConfirming: false });
    if (!anyway && !(await this.#fits())) return;
    if (this.operation.annotations?.destructive && !isConfirmed) this.set({ isConfirming: true });
    else await this.#run();
  }

  /** Ends the call, or what is done before it. */
  cancel(): void {
    this.#stop.abort();
    if (this.run !== undefined) endRun(this.run, "cancelled");
    this.set({ isChecking: false });
  }

  /** Answers a question of the call; it stays open when the gateway does not take the answer. */
  async answer(key: string, answer: Pick<AnswerRequest, "action" | "content">): Promise<void> {
    const { run } = this;
    if (run?.requestId === undefined) throw new Error("The call has not begun.");
    await this.#with.api.answer({ requestId: run.requestId, key, ...answer });
    run.questions = run.questions.filter((asked) => asked.key !== key);
    this.set({});
  }

  async #fits(): Promise<boolean> {
    clearTimeout(this.#recheck);
    const signal = this.#begin();
    this.set({ wasTried: true, isChecking: true });
    const issues = await this.#check(signal);
    if (signal.aborted) return false;
    const isHeldBack = issues.length > 0;
    this.set({ isChecking: false, issues, isHeldBack });
    return !isHeldBack;
  }

  #begin(): AbortSignal {
    this.#stop = new AbortController();
    return this.#stop.signal;
  }

  /** A check that fails holds nothing back: the call itself says what is wrong. */
  #check(signal: AbortSignal): Promise<readonly IssueView[]> {
    return this.#with.api.validate(this.#ask(), signal).then(
      ({ issues }) => issues,
      () => [],
    );
  }

  async #checkAgain(): Promise<void> {
    const { value } = this;
    const issues = await this.#check(AbortSignal.timeout(10_000));
    if (this.value === value && this.wasTried) this.set({ issues });
  }

  #ask(): RunRequest {
    const { value } = this;
    return { operation: this.operation.id, ...(value !== undefined && { input: value }) };
  }

  async #run(): Promise<void> {
    const { value, operation } = this;
    const run = beginRun(value);
    const signal = this.#begin();
    this.set({ run, restored: undefined });
    if (value !== undefined) this.#with.history.add(operation.id, value, operation.inputSchema);
    let failure = UNREACHABLE;
    try {
      for await (const event of this.#with.api.run(this.#ask(), signal)) {
        takeEvent(run, event);
        this.#show ??= setTimeout(() => this.set({}), SHOW_EVERY_MS);
      }
    } catch (thrown) {
      ({ failure } = toApiError(thrown));
    }
    if (run.status === "running") run.failure = failure;
    endRun(run, "failed");
    const issues = run.failure === undefined ? [] : failureIssues(run.failure);
    this.set(issues.length > 0 && value === this.value ? { issues } : {});
  }
}

const MOST_ISSUES = 500;

/** The fields a refused input missed, where a failure names them; whatever else is in its details is left alone. */
export function failureIssues({ code, details }: CallFailure): readonly IssueView[] {
  const issues = code === "VALIDATION_ERROR" ? listIn(ownOf(details, "issues")) : [];
  return issues.slice(0, MOST_ISSUES).filter(isIssue);
}

function isIssue(value: unknown): value is IssueView {
  return ["pointer", "expected", "found"].every((name) => typeof ownOf(value, name) === "string");
}
