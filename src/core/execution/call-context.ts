import type { Identity } from "../access/identity.ts";
import { undeclared } from "../access/tier.ts";
import { CallError } from "../errors/errors.ts";
import type { CallerSide } from "../operation/caller-side.ts";
import type { CallOrigin, Metadata, OperationContext } from "../operation/operation-context.ts";
import type { OperationEnv } from "../operation/operation-env-types.ts";
import type { ExecuteOptions } from "../registry/executor.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import { type EnvExecute, operationEnv } from "../registry/operation-env.ts";
import { notify, type RegistryHost } from "../registry/registry-host.ts";
import type { CallScope, Inheritance } from "./call-scope.ts";
import { isRequestId, randomId } from "./request-id.ts";

/** What calls made by the handler of this context take over from it; no member, so that handlers cannot reach it. */
export let inheritFrom: (context: CallContext) => Inheritance;

/** Marks a call as over, after which progress is no longer reported, or as going on after all. */
export let closeContext: (context: CallContext, over?: boolean) => void;

/** Tells whether a context belongs to a call of this registry. */
export let belongsTo: (context: CallContext, host: RegistryHost) => boolean;

/** Tells whether nobody waits for the call any more. */
export let isOver: (context: CallContext) => boolean;

let isNestedCall: (context: CallContext) => boolean;
let cancellationSignalOf: (context: CallContext) => AbortSignal | undefined;

/** Gives the signal of a call that somebody can abort, and nothing for others: a signal costs more than most of a call. */
export function signalIfAny(context: OperationContext): AbortSignal | undefined {
  return context instanceof CallContext ? cancellationSignalOf(context) : context.signal;
}

/** Tells whether a handler of this process made the call; one that came from outside may have a `parent` too, elsewhere. */
export function isNested(context: OperationContext): boolean {
  return context instanceof CallContext && isNestedCall(context);
}

type CallNames = Pick<OperationContext, "operationId" | "requestId">;

/** The context of one call; what a handler does not read is never made. */
export class CallContext implements OperationContext {
  readonly #host: RegistryHost;
  readonly #entry: OperationEntry | undefined;
  readonly #operationId: string;
  readonly #scope: CallScope;
  #requestId: unknown;
  #hasOwnId = false;
  #quietSignal: AbortSignal | undefined;
  #over = false;

  static {
    inheritFrom = (context) => ({
      identity: context.#entry?.authority ?? context.#scope.identity,
      cancellation: context.#scope.cancellation,
      depth: context.#scope.depth,
      metadata: context.#scope.metadata,
      caller: context.#scope.caller,
    });
    closeContext = (context, over = true) => {
      context.#over = over;
    };
    isNestedCall = (context) => context.#scope.parent !== undefined;
    cancellationSignalOf = (context) => context.#scope.cancellation?.signal;
    belongsTo = (context, host) => context.#host === host;
    isOver = (context) => context.#over || context.#scope.cancellation?.ended === true;
  }

  constructor(host: RegistryHost, entry: OperationEntry | undefined, operationId: string, scope: CallScope) {
    this.#host = host;
    this.#entry = entry;
    this.#operationId = operationId;
    this.#scope = scope;
    this.#requestId = scope.requestId;
  }

  get requestId(): string {
    if (!this.#hasOwnId) {
      this.#hasOwnId = true;
      if (!isRequestId(this.#requestId)) this.#requestId = randomId();
    }
    return this.#requestId as string;
  }

  get operationId(): string {
    return this.#operationId;
  }

  get parent(): CallOrigin | undefined {
    const { parent, origin } = this.#scope;
    return parent === undefined ? origin : parent.#origin();
  }

  get identity(): Identity | undefined {
    return this.#scope.identity;
  }

  get signal(): AbortSignal {
    const { cancellation } = this.#scope;
    if (cancellation !== undefined) return cancellation.signal;
    this.#quietSignal ??= new AbortController().signal;
    return this.#quietSignal;
  }

  get deadline(): number | undefined {
    const deadline = this.#scope.cancellation?.deadline;
    return deadline === Number.POSITIVE_INFINITY ? undefined : deadline;
  }

  get metadata(): Metadata {
    return this.#scope.metadata;
  }

  get env(): OperationEnv {
    const { identity } = inheritFrom(this);
    const { execute } = this;
    return operationEnv(this.#host.table, execute as EnvExecute, (entry) => entry.admits(identity));
  }

  get execute(): OperationContext["execute"] {
    const call = (target: unknown, input: unknown, options: ExecuteOptions | undefined) =>
      this.#host.execute(target, input, options, this);
    return call as OperationContext["execute"];
  }

  get subscribe(): OperationContext["subscribe"] {
    const call = (target: unknown, input: unknown, options: ExecuteOptions | undefined) =>
      this.#host.subscribe(target, input, options, this);
    return call as OperationContext["subscribe"];
  }

  get progress(): OperationContext["progress"] {
    return (value) => {
      if (isOver(this)) return;
      notify(this.#host, this.#scope.onProgress, value);
      this.#tell(this.#host.onProgress, { value });
    };
  }

  get requireFeature(): OperationContext["requireFeature"] {
    return (feature) => {
      const { tiers } = this.#entry ?? {};
      if (tiers === undefined) throw undeclared(this.#operationId, feature);
      const refusal = tiers.refusalOf(feature, this.#scope.identity);
      if (refusal !== undefined) throw refusal;
    };
  }

  get log(): OperationContext["log"] {
    return (level, message, data) => {
      notify(this.#host, this.#scope.onLog, { level, message, data });
      this.#tell(this.#host.onLog, { level, message, data });
    };
  }

  get elicit(): OperationContext["elicit"] {
    return (request, options) =>
      this.#ask("elicit", (caller, signal) => caller.elicit?.(request, signal, options?.key));
  }

  get sample(): OperationContext["sample"] {
    return (request, options) =>
      this.#ask("sample", (caller, signal) => caller.sample?.(request, signal, options?.key));
  }

  get roots(): OperationContext["roots"] {
    return (options) => this.#ask("roots", (caller, signal) => caller.roots?.(signal, options?.key));
  }

  async #ask<A>(
    what: "elicit" | "sample" | "roots",
    ask: (caller: CallerSide, signal: AbortSignal) => Promise<A> | undefined,
  ): Promise<A> {
    const { caller } = this.#scope;
    const asked = caller && ask(caller, this.signal);
    if (asked !== undefined) return await asked;
    const message = `Whoever called "${this.#operationId}" cannot be asked (${what}): their side does not offer it.`;
    throw new CallError("NOT_IMPLEMENTED", message);
  }

  /** Adds which call it was; an id is made only where somebody listens. */
  #tell<T>(listener: ((record: T & CallNames) => void) | undefined, record: T): void {
    if (listener === undefined) return;
    const { operationId, requestId } = this;
    notify(this.#host, listener, { ...record, operationId, requestId });
  }

  #origin(): CallOrigin {
    const { requestId, operationId, parent } = this;
    return Object.freeze({ requestId, operationId, parent });
  }
}
