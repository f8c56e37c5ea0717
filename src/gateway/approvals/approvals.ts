import type { Identity } from "../../core/access/identity.ts";
import { Listeners } from "../../core/collections/listeners.ts";
import { CallError, toCallError, turnDown } from "../../core/errors/errors.ts";
import { callerOf, taskOf } from "../../core/execution/call-context.ts";
import { addAbortListener, monotonicNow, removeAbortListener } from "../../core/execution/cancellation.ts";
import type { HookedCall } from "../../core/execution/dispatch.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import { mismatchText } from "../../core/schema/schema-issue.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { isSameSecret } from "../../http/oauth/oauth-store.ts";
import { type ApprovalNote, takeNote } from "../policy/call-notes.ts";
import { type StateBounds, StateError, type StateName, type StateStore } from "../state/state-store.ts";
import {
  APPROVALS,
  type ApprovalBinding,
  type ApprovalDecision,
  type ApprovalPerson,
  type ApprovalRecord,
  ASKED_LIMITS,
  bindApproval,
  callerDigestOf,
  createApprovalId,
  decodeApproval,
  definitionHash,
  digestHex,
  encodeApproval,
  inputTextOf,
  nameOfApproval,
  personOf,
  shownInput,
  wordsOf,
} from "./approval-record.ts";
import { APPROVE_DEFAULTS, type ApprovalPlace, type ApprovePolicy } from "./approve-policy.ts";

/** Bounds of the calls that wait for a person. */
export const APPROVAL_LIMITS = {
  /** Bytes of all that is kept of them. */
  bytes: 67_108_864,
  /** Of all that may wait, one caller among others may have this part: a twentieth. */
  shares: 20,
  /** Milliseconds for which the same call is refused after a person has said no. */
  deniedMs: 600_000,
} as const;

/** Requests for approval that wait or are not used yet, where the config says nothing. */
export const USUAL_APPROVALS = 1_000;
/** Between two looks at what is kept: a change may be missed while the store is away. */
const POLL_MS = 5_000;
/** Between two signs of life to a caller who waits. */
const PROGRESS_MS = 10_000;
/** Milliseconds before the caller's own deadline at which they are told that they have to ask again. */
const ANSWER_MS = 250;
/** Milliseconds after which a caller who was told to ask again should. */
const AGAIN_MS = 5_000;
/** How small a step of progress is: what the operation itself reports begins above it. */
const STEP = 1e-6;
const OWNERS = "approval-owners";

/** What calls are held with. */
export interface ApprovalsOptions {
  /** Where requests are kept, so that they outlive this process where the config says so. */
  records(): Promise<StateStore>;
  /** What holds for an operation now. */
  policyOf(operationId: string): ApprovePolicy | undefined;
  operationOf(operationId: string): AnyOperation | undefined;
  sourceOf(operationId: string): string | undefined;
  /** Takes secrets out of a text. */
  mask(text: string): string;
  /** Requests in all. */
  most(): number;
  /** Whether callers are told apart: then no one of them may fill all the room. */
  isShared(): boolean;
  /** Hears of a request that people are to be asked about, with what its one-time address ends with. */
  onAsked(record: ApprovalRecord, ticket: string): void;
  /** Hears what was decided here, whether the call is made again or not. */
  onDecided?(decided: DecidedApproval): void;
  /** What a one-time address ends with, where one is given out. */
  createTicket(): string | undefined;
  /** Where a request can be looked at, as far as that is known. */
  addressOf(id: string): string | undefined;
}

/** A call that waits for a person. */
export interface HeldCall {
  readonly call: HookedCall;
  readonly operation: AnyOperation;
  readonly policy: ApprovePolicy;
  /** What ends the wait, in place of whatever ends the call. */
  readonly signal: AbortSignal | undefined;
  /** Whether the caller waits for as long as it takes. */
  readonly isPatient: boolean;
}

/** Who decides about calls, and where they do it. */
export interface Approver {
  readonly identity: Identity | undefined;
  readonly via: Exclude<ApprovalPlace, "webhook" | "client">;
}

/** A request as it is shown to somebody. */
export interface ApprovalView
  extends Omit<ApprovalRecord, "callerKey" | "ticket" | "inputDigest" | "definition"> {
  /** Why this person may not decide; absent where they may. */
  readonly refusal?: ApprovalRefusal | undefined;
}

/** Why somebody may not decide: it is their own call, they lack a right, or people are asked elsewhere. */
export type ApprovalRefusal = "own" | "rights" | "place" | "decided";

/** What was decided about one call, for logs and the audit; never what went into the call. */
export interface DecidedApproval {
  readonly event: "approval";
  readonly operation: string;
  readonly source?: string | undefined;
  /** Who made the call; nothing for an anonymous caller. */
  readonly subject?: string | undefined;
  readonly issuer?: string | undefined;
  readonly approval: ApprovalNote;
}

/** Holds calls until a person has said yes or no, for all replicas of a gateway. */
export class Approvals {
  readonly #options: ApprovalsOptions;
  readonly #waits = new Listeners();
  #isClosed = false;

  constructor(options: ApprovalsOptions) {
    this.#options = options;
  }

  /** Ends every wait; what waits for a person is kept. */
  close(): void {
    this.#isClosed = true;
    this.#waits.tell();
  }

  /**
   * Resolves once a person has approved this very call, whose approval is used up by that. Throws `APPROVAL_REQUIRED` where nobody has by
   * the time its caller waits for, and `APPROVAL_DENIED` where one said no.
   */
  async hold(held: HeldCall): Promise<void> {
    const { call, operation } = held;
    try {
      await checkHeldInput(operation, call.input);
      const text = inputTextOf(call.input);
      if (text === undefined) throw new CallError("VALIDATION_ERROR", NOT_JSON, { stack: false });
      const source = this.#options.sourceOf(operation.id);
      const caller = callerOf(call.context);
      const binding = bindApproval(operation, source, { caller, text });
      await this.#waitFor(await this.#options.records(), held, binding);
      if (inputTextOf(call.input) !== text) throw new CallError("CONFLICT", CHANGED_INPUT, { stack: false });
    } catch (thrown) {
      throw turnDown(toHeldError(thrown), operation.id);
    }
  }

  /** Requests that somebody may see, the oldest first. */
  async list(approver: Approver): Promise<readonly ApprovalView[]> {
    const store = await this.#options.records();
    const owners = await listAll(store, OWNERS, "");
    const found: ApprovalView[] = [];
    for (const owner of owners) {
      for (const key of await listAll(store, APPROVALS, owner)) {
        const kept = await store.get({ collection: APPROVALS, owner, key });
        const record = kept && decodeApproval(kept.value);
        const view = record && this.#viewFor(record, approver);
        if (view !== undefined) found.push(view);
      }
    }
    return found.sort((a, b) => a.askedAt - b.askedAt);
  }

  /** One request; nothing for one that is not there or that they may not see. */
  async find(id: string, approver: Approver): Promise<ApprovalView | undefined> {
    const record = (await this.#read(await this.#options.records(), id))?.record;
    return record && this.#viewFor(record, approver);
  }

  /** Decides about a request; throws a `CallError` where it is not there, or may not be decided by them. */
  async decide(
    id: string,
    { isApproved, comment }: { readonly isApproved: boolean; readonly comment?: string | undefined },
    approver: Approver,
  ): Promise<ApprovalView> {
    const store = await this.#options.records();
    const kept = await this.#read(store, id);
    const view = kept && this.#viewFor(kept.record, approver);
    if (kept === undefined || view === undefined) throw notThere();
    if (view.refusal !== undefined) throw refused(view.refusal);
    const { operation, definition } = kept.record;
    const now = this.#hashNow(operation);
    if (isApproved && now !== undefined && now !== definition) throw changedDefinition(operation);
    const decision = { by: personOf(approver.identity), via: approver.via, at: store.now(), comment };
    const decided = await this.#write(store, kept, { isApproved, decision: cleanDecision(decision) });
    return this.#viewFor(decided, approver) ?? view;
  }

  /** The request that a one-time address is for; nothing where that fits none that waits. */
  async findByTicket(id: string, ticket: string): Promise<ApprovalView | undefined> {
    const kept = await this.#readTicket(await this.#options.records(), id, ticket);
    return kept && viewOf(kept.record);
  }

  /** Decides about a request by its one-time address; throws where that fits none that waits. */
  async decideByTicket(
    id: string,
    ticket: string,
    { isApproved, by, comment }: TicketDecision,
  ): Promise<ApprovalView> {
    const store = await this.#options.records();
    const kept = await this.#readTicket(store, id, ticket);
    if (kept === undefined) throw notThere();
    const { record } = kept;
    const subject = by === undefined ? undefined : safeLine(by, 200);
    const isOwn = subject !== undefined && subject === record.caller.subject;
    const policy = this.#options.policyOf(record.operation) ?? {};
    if (isOwn && policy.own !== true) throw refused("own");
    const decision = { by: { subject }, via: "webhook", at: store.now(), comment } as const;
    return viewOf(await this.#write(store, kept, { isApproved, decision: cleanDecision(decision) }));
  }

  #hashNow(operationId: string): string | undefined {
    const operation = this.#options.operationOf(operationId);
    return operation && definitionHash(operation, this.#options.sourceOf(operationId));
  }

  /** Waits until the request is approved, and uses it up. */
  async #waitFor(store: StateStore, held: HeldCall, binding: ApprovalBinding): Promise<void> {
    const { context } = held.call;
    const startedAt = monotonicNow();
    const wait = new HeldWait(held, startedAt);
    const stops = [store.watch(binding.name, wait.wake), this.#waits.add(wait.wake)];
    const task = taskOf(context);
    let [seen, isNoted]: [ApprovalRecord?, boolean?] = [];
    let noted: ApprovalNote["decision"] | undefined;
    const note = (decision: ApprovalNote["decision"], record: ApprovalRecord): void => {
      noted = decision;
      takeNote(context, { approval: noteOf(decision, record, monotonicNow() - startedAt) });
    };
    try {
      for (;;) {
        // Without room for the note it waits in this process alone.
        if (!isNoted) await task?.wait?.(true).catch(() => {});
        isNoted = true;
        const { revision, record } = await this.#ask(store, held, binding);
        if (record.state === "denied") {
          note("denied", record);
          throw this.#deniedError(record);
        }
        // The call would run what was there when it came.
        if (this.#hashNow(held.operation.id) !== binding.definition)
          throw changedDefinition(held.operation.id);
        if (record.state === "approved") {
          await task?.wait?.(false);
          isNoted = false;
          // Of several who make the same call, at whichever replica, one finds it still there.
          if (!(await store.delete(binding.name, revision))) continue;
          note("approved", record);
          return;
        }
        if (seen?.id !== record.id) {
          note("waiting", record);
          if (seen === undefined) this.#askClient(held, record);
        }
        seen = record;
        // A task is left to the next process, where tasks outlast this one.
        if (this.#isClosed && (task === undefined || task.isPossible === true))
          throw new CallError("UNAVAILABLE", "The gateway is closing.", { stack: false });
        const isLate = await wait.next(record.expiresAt - store.now());
        if (isLate) throw this.#requiredError(record);
      }
    } finally {
      // It was held until now.
      if (noted === "waiting" && seen !== undefined) note(noted, seen);
      for (const stop of stops) stop();
      wait.end();
    }
  }

  /** The request for a call: the one that there is, or a new one. */
  async #ask(
    store: StateStore,
    { call, operation, policy }: HeldCall,
    binding: ApprovalBinding,
  ): Promise<{ readonly revision: number; readonly record: ApprovalRecord }> {
    const { name } = binding;
    for (;;) {
      const kept = await store.get(name);
      if (kept !== undefined) {
        const record = decodeApproval(kept.value);
        if (record === undefined || !isSameBinding(record, binding))
          throw new StateError("damaged", "A request for approval cannot be read.");
        return { revision: kept.revision, record };
      }
      const { mask, sourceOf, createTicket } = this.#options;
      const input = shownInput(operation, call.input, mask);
      if (input === undefined) throw new CallError("TOO_LARGE", TOO_LARGE, { stack: false });
      const askedAt = store.now();
      const expiresAt = askedAt + (policy.expiresMs ?? APPROVE_DEFAULTS.expiresMs);
      const ticket = (policy.by ?? APPROVE_DEFAULTS.by).includes("webhook") ? createTicket() : undefined;
      const record: ApprovalRecord = {
        id: createApprovalId(name),
        state: "waiting",
        caller: personOf(callerOf(call.context)),
        callerKey: binding.callerKey,
        operation: operation.id,
        source: sourceOf(operation.id),
        definition: binding.definition,
        ...wordsOf(operation),
        input,
        inputDigest: binding.inputDigest,
        askedAt,
        expiresAt,
        ticket: ticket && digestHex(ticket),
      };
      const revision = await this.#create(store, name, record);
      if (revision === undefined) continue;
      if (ticket !== undefined) this.#options.onAsked(record, ticket);
      return { revision, record };
    }
  }

  /** Stores a new request, after whose it is, so that it is listed; nothing where there is one by now. */
  async #create(store: StateStore, name: StateName, record: ApprovalRecord): Promise<number | undefined> {
    const bounds = this.#bounds();
    const owner = { collection: OWNERS, owner: "", key: name.owner };
    const { expiresAt } = record;
    const ownerBounds = { ...bounds, ownRecords: bounds.records, ownBytes: bounds.bytes };
    const listed = { expiresAt, bounds: ownerBounds, listed: true };
    for (;;) {
      const known = await store.create(owner, EMPTY, listed);
      if (known.state === "full") throw full();
      if (known.state === "created" || known.record.expiresAt >= expiresAt) break;
      // It is listed for as long as any request of this caller is there.
      const later = await store.update(owner, known.record.revision, EMPTY, listed);
      if (later.state === "updated") break;
      if (later.state === "full") throw full();
    }
    const created = await store.create(name, encodeApproval(record), { expiresAt, bounds, listed: true });
    if (created.state === "full") throw full();
    return created.state === "created" ? created.revision : undefined;
  }

  async #write(
    store: StateStore,
    { name, revision, record }: KeptApproval,
    { isApproved, decision }: { readonly isApproved: boolean; readonly decision: ApprovalDecision },
  ): Promise<ApprovalRecord> {
    const expiresAt = isApproved
      ? record.expiresAt
      : Math.min(record.expiresAt, decision.at + APPROVAL_LIMITS.deniedMs);
    // Any decision uses up the one-time address, wherever it is made.
    const { ticket: _, ...rest } = record;
    const decided: ApprovalRecord = {
      ...rest,
      state: isApproved ? "approved" : "denied",
      decision,
      expiresAt,
    };
    const written = await store.update(name, revision, encodeApproval(decided), {
      expiresAt,
      bounds: this.#bounds(),
      listed: true,
    });
    if (written.state === "full") throw full();
    if (written.state === "changed") throw refused("decided");
    this.#waits.tell();
    this.#options.onDecided?.(toDecided(decided));
    return decided;
  }

  #bounds(): StateBounds {
    const records = this.#options.most();
    const { bytes, shares } = APPROVAL_LIMITS;
    const part = this.#options.isShared() ? shares : 1;
    return { records, bytes, ownRecords: Math.ceil(records / part), ownBytes: Math.ceil(bytes / part) };
  }

  async #read(store: StateStore, id: string): Promise<KeptApproval | undefined> {
    const name = nameOfApproval(id);
    const kept = name && (await store.get(name));
    const record = kept && decodeApproval(kept.value);
    // An earlier request for the same call had another id: an approver who saw that one has not seen this one.
    if (name === undefined || kept === undefined || record?.id !== id) return undefined;
    return { name, revision: kept.revision, record };
  }

  async #readTicket(store: StateStore, id: string, ticket: string): Promise<KeptApproval | undefined> {
    const kept = await this.#read(store, id);
    const { ticket: wanted, state } = kept?.record ?? {};
    if (kept === undefined || wanted === undefined || state !== "waiting") return undefined;
    const policy = this.#options.policyOf(kept.record.operation) ?? {};
    const isAsked = (policy.by ?? APPROVE_DEFAULTS.by).includes("webhook");
    return isAsked && isSameSecret(digestHex(ticket), wanted) ? kept : undefined;
  }

  /** Nothing for those who have no part in it: which calls wait is for who may decide, and for whose they are. */
  #viewFor(record: ApprovalRecord, approver: Approver): ApprovalView | undefined {
    const refusal = this.#refusalFor(record, approver);
    const isOwn = record.callerKey === callerDigestOf(approver.identity);
    if (refusal === "rights" && !(isOwn && approver.identity !== undefined)) return undefined;
    return viewOf(record, refusal);
  }

  #refusalFor(record: ApprovalRecord, { identity, via }: Approver): ApprovalRefusal | undefined {
    const policy = this.#options.policyOf(record.operation) ?? {};
    const { own = false, scopes = APPROVE_DEFAULTS.scopes, subjects, by = APPROVE_DEFAULTS.by } = policy;
    const held = identity?.scopes ?? [];
    // Where nobody is asked who they are, everybody is the caller.
    const hasRights =
      identity === undefined ? own && !this.#options.isShared() : scopes.every((one) => held.includes(one));
    const isNamed = subjects === undefined || (identity !== undefined && subjects.includes(identity.subject));
    if (!hasRights || !isNamed) return "rights";
    const isSame =
      record.callerKey === callerDigestOf(identity) || record.caller.subject === personOf(identity).subject;
    if (isSame && !own) return "own";
    if (!(by as readonly string[]).includes(via)) return "place";
    return record.state === "waiting" ? undefined : "decided";
  }

  /** Asks the caller's own client, where its word counts; what it does not answer is left to others. */
  #askClient({ call, policy }: HeldCall, record: ApprovalRecord): void {
    if (!(policy.by ?? []).includes("client")) return;
    void this.#askedClient(call, record).catch(() => {});
  }

  async #askedClient({ context }: HookedCall, record: ApprovalRecord): Promise<void> {
    const { id, operation, input, caller } = record;
    const message = `Approve the call of ${operation}${input === "" ? "" : ` with ${input}`}?`;
    const properties = { approve: { type: "boolean", title: "Approve this call" } };
    const requestedSchema = { type: "object", properties, required: ["approve"] };
    const { action, content } = await context.elicit(
      { message, requestedSchema },
      { key: `approval-${id.slice(0, 12)}` },
    );
    if (action === "cancel") return;
    const store = await this.#options.records();
    const kept = await this.#read(store, id);
    if (kept?.record.state !== "waiting") return;
    const isApproved = action === "accept" && content?.["approve"] === true;
    await this.#write(store, kept, { isApproved, decision: { by: caller, via: "client", at: store.now() } });
  }

  #requiredError(record: ApprovalRecord): CallError {
    const details = { approval: this.#approvalFacts(record), retryAfterMs: AGAIN_MS };
    const message = `This call of "${record.operation}" waits for a person's approval (${record.id.slice(0, 12)}). Make the same call again once it is approved.`;
    return new CallError("APPROVAL_REQUIRED", message, { details, stack: false });
  }

  #deniedError(record: ApprovalRecord): CallError {
    const { comment } = record.decision ?? {};
    const approval = { ...this.#approvalFacts(record), ...(comment !== undefined && { comment }) };
    const message = `A person was asked about this call of "${record.operation}" and denied it.`;
    return new CallError("APPROVAL_DENIED", message, { details: { approval }, stack: false });
  }

  #approvalFacts({ id, state, expiresAt }: ApprovalRecord): Readonly<Record<string, unknown>> {
    const url = this.#options.addressOf(id);
    return { id, state, expiresAt: new Date(expiresAt).toISOString(), ...(url !== undefined && { url }) };
  }
}

/** What was decided at a one-time address. */
export interface TicketDecision {
  readonly isApproved: boolean;
  /** Who decided, as the other side says. */
  readonly by?: string | undefined;
  readonly comment?: string | undefined;
}

interface KeptApproval {
  readonly name: StateName;
  readonly revision: number;
  readonly record: ApprovalRecord;
}

const EMPTY = new Uint8Array();
const NOT_JSON = "A call that a person has to approve must have an input that can be written as JSON.";
const TOO_LARGE = `The input has more than ${ASKED_LIMITS.input} characters, or is too deep or too wide to be looked through: a person who has to approve it could not be shown all of it.`;
const WAITS = "Waits for a person's approval.";
const CHANGED_INPUT = "The input is no longer the one that was approved.";

/** The wait of one call: for a change, for its end, or for its time to be over. */
class HeldWait {
  readonly #context: HookedCall["context"];
  readonly #signal: AbortSignal;
  readonly #until: number;
  readonly #progress: ReturnType<typeof setInterval>;
  #wake: () => void = () => {};
  #isAwake = false;
  #steps = 0;

  constructor({ call, policy, signal, isPatient }: HeldCall, startedAt: number) {
    const { context } = call;
    this.#context = context;
    this.#signal = signal ?? context.signal;
    const { holdMs = APPROVE_DEFAULTS.holdMs } = policy;
    const own = isPatient ? Number.POSITIVE_INFINITY : startedAt + holdMs;
    this.#until = Math.min(own, (context.deadline ?? Number.POSITIVE_INFINITY) - ANSWER_MS);
    this.#report();
    this.#progress = setInterval(() => this.#report(), PROGRESS_MS);
    this.#progress.unref();
  }

  readonly wake = (): void => {
    this.#isAwake = true;
    this.#wake();
  };

  /** Resolves when it is time to look again; tells whether it is too late for that. */
  async next(expiresInMs: number): Promise<boolean> {
    const left = Math.min(this.#until - monotonicNow(), expiresInMs);
    if (left <= 0) return true;
    if (this.#signal.aborted) throw this.#signal.reason;
    if (!this.#isAwake) await this.#sleep(Math.min(left, POLL_MS));
    this.#isAwake = false;
    return false;
  }

  end(): void {
    clearInterval(this.#progress);
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer);
        removeAbortListener(this.#signal, listener);
        this.#wake = () => {};
      };
      const listener = {
        onAbort: ({ reason }: AbortSignal): void => {
          stop();
          reject(reason);
        },
      };
      const timer = setTimeout(() => {
        stop();
        resolve();
      }, ms);
      this.#wake = () => {
        stop();
        resolve();
      };
      addAbortListener(this.#signal, listener);
    });
  }

  #report(): void {
    this.#steps += 1;
    if (this.#steps === 1) taskOf(this.#context)?.say(WAITS);
    this.#context.progress({ progress: this.#steps * STEP, message: WAITS });
  }
}

/** Throws for an input that the operation would refuse: nobody is asked about a call that cannot run. */
async function checkHeldInput({ id, inputSchema }: AnyOperation, input: unknown): Promise<void> {
  if (inputSchema === undefined) return;
  const schema = toOperationSchema(inputSchema, "input");
  const passes = schema.check(input);
  if (passes && schema.validate === undefined) return;
  const mayPass = passes || schema.mayConvert?.(input) === true;
  // What a parser makes of the input is its own affair: it is asked again when the call runs.
  if (mayPass && schema.validate !== undefined && (await schema.validate(input)).issues === undefined) return;
  const issues = schema.errors(input);
  throw new CallError("VALIDATION_ERROR", mismatchText(id, issues), { details: { issues }, stack: false });
}

function isSameBinding(record: ApprovalRecord, binding: ApprovalBinding): boolean {
  return (
    record.callerKey === binding.callerKey &&
    record.definition === binding.definition &&
    record.inputDigest === binding.inputDigest
  );
}

async function listAll(store: StateStore, collection: string, owner: string): Promise<readonly string[]> {
  const all: string[] = [];
  for (;;) {
    const page = await store.list(collection, owner, { limit: 1_000, after: all.at(-1) });
    all.push(...page);
    if (page.length < 1_000) return all;
  }
}

function viewOf(record: ApprovalRecord, refusal?: ApprovalRefusal): ApprovalView {
  const { callerKey: _, ticket: __, inputDigest: ___, definition: ____, ...shown } = record;
  return { ...shown, ...(refusal !== undefined && { refusal }) };
}

function cleanDecision({ comment, ...decision }: ApprovalDecision): ApprovalDecision {
  const said = comment === undefined ? "" : safeLine(comment, ASKED_LIMITS.comment);
  return said === "" ? decision : { ...decision, comment: said };
}

function toDecided(record: ApprovalRecord): DecidedApproval {
  const { operation, source, caller, state } = record;
  const { heldMs: _, ...approval } = noteOf(state, record, 0);
  return {
    event: "approval",
    operation,
    ...(source !== undefined && { source }),
    ...(caller.subject !== undefined && { subject: caller.subject }),
    ...(caller.issuer !== undefined && { issuer: caller.issuer }),
    approval,
  };
}

function noteOf(decision: ApprovalNote["decision"], record: ApprovalRecord, heldMs: number): ApprovalNote {
  const { by, via, at } = record.decision ?? {};
  const { subject, issuer }: ApprovalPerson = by ?? {};
  return {
    id: record.id,
    decision,
    ...(subject !== undefined && { by: subject }),
    ...(issuer !== undefined && { issuer }),
    ...(via !== undefined && { via }),
    ...(at !== undefined && { at: new Date(at).toISOString() }),
    heldMs: Math.round(heldMs),
  };
}

/** What is wrong with the store is not told: the call has not run. */
function toHeldError(thrown: unknown): CallError {
  if (!(thrown instanceof StateError)) return toCallError(thrown);
  const message = "Approvals cannot be looked up now, and without one the call does not run.";
  return new CallError("UNAVAILABLE", message, { cause: thrown, stack: false });
}

function full(): CallError {
  const message = "As many calls wait for approval as there is room for; try again later.";
  return new CallError("RESOURCE_EXHAUSTED", message, { stack: false });
}

function notThere(): CallError {
  return new CallError(
    "NOT_FOUND",
    "There is no such request for approval; it may have been used or have expired.",
    {
      stack: false,
    },
  );
}

function changedDefinition(operationId: string): CallError {
  const message = `"${operationId}" is no longer what it was when its approval was asked for.`;
  return new CallError("DEFINITION_CHANGED", message, { stack: false });
}

const REFUSALS: Readonly<Record<ApprovalRefusal, string>> = {
  own: "Nobody approves their own call.",
  rights: "You may not decide about this call.",
  place: "Calls of this operation are not decided about here.",
  decided: "This was decided about already.",
};

function refused(refusal: ApprovalRefusal): CallError {
  const code = refusal === "decided" ? "CONFLICT" : "ACCESS_DENIED";
  return new CallError(code, REFUSALS[refusal], { stack: false });
}
