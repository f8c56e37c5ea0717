import { withFacts } from "../envelope/envelope.ts";
import { monotonicNow, toDeadline } from "../execution/deadline.ts";
import { dispatch } from "../execution/dispatch.ts";
import type { CallHook, Hooks, SubscribeHook } from "../execution/hooks.ts";
import { subscribe } from "../execution/subscription.ts";
import type { OutputPolicy } from "../operation/operation-types.ts";
import {
  type AnySchema,
  DEFAULT_SCHEMA_OPTIONS,
  type OperationSchema,
  type SchemaDirection,
  toOperationSchema,
} from "../schema/any-schema.ts";
import type { SchemaOptions } from "../schema/compile-schema.ts";
import { EntryTable } from "./entry-table.ts";
import type { ChangeListener, RegistryChange } from "./executor.ts";
import type { EntrySettings } from "./operation-entry.ts";
import { notify, type RegistryHost, type RegistryWarning } from "./registry-host.ts";
import type { RegistryOptions } from "./registry-options.ts";

const POLICIES: readonly unknown[] = ["off", "warn", "strict"];
const CALL_DEPTH = 64;

/** The state of a registry, shared with the calls that run in it and out of reach for everybody else. */
export class RegistryCore implements RegistryHost, EntrySettings {
  readonly table = new EntryTable();
  readonly outputPolicy: OutputPolicy;
  readonly defaultTimeoutMs: number | undefined;
  readonly maxDepth: number;
  readonly bringMissing: RegistryHost["bringMissing"];
  readonly explainMissing: RegistryHost["explainMissing"];
  readonly onLog: RegistryHost["onLog"];
  readonly onProgress: RegistryHost["onProgress"];
  /** Replaced and never changed, so that calls under way keep theirs. */
  executeHooks: readonly CallHook[];
  subscribeHooks: readonly SubscribeHook[] = [];
  readonly #listeners = new Set<ChangeListener>();
  readonly #onWarning: (warning: RegistryWarning) => void;
  /** One object for all schemas: the key under which compiled ones are kept. */
  readonly #schemaOptions: SchemaOptions;

  constructor(options: RegistryOptions) {
    const { outputPolicy = "warn", defaultTimeoutMs, limits = {}, codegen = true, timing = false } = options;
    if (!POLICIES.includes(outputPolicy))
      throw new TypeError('outputPolicy must be "off", "warn" or "strict".');
    if (defaultTimeoutMs !== undefined) toDeadline(defaultTimeoutMs, 0);
    const { callDepth = CALL_DEPTH, ...schemaLimits } = limits;
    if (!Number.isInteger(callDepth) || callDepth < 0)
      throw new TypeError("limits.callDepth must be 0 or more.");
    this.outputPolicy = outputPolicy;
    this.defaultTimeoutMs = defaultTimeoutMs;
    this.maxDepth = callDepth;
    this.bringMissing = options.bringMissing;
    this.explainMissing = options.explainMissing;
    this.onLog = options.onLog;
    this.onProgress = options.onProgress;
    this.executeHooks = timing ? [takeTime] : [];
    this.#onWarning = options.onWarning ?? warnOnce();
    const isUsual = codegen && Object.keys(schemaLimits).length === 0;
    this.#schemaOptions = isUsual ? DEFAULT_SCHEMA_OPTIONS : { limits: schemaLimits, codegen };
  }

  readonly execute: RegistryHost["execute"] = (target, input, options, parent) =>
    dispatch(this, target, input, options, parent);

  readonly subscribe: RegistryHost["subscribe"] = (target, input, options, parent) =>
    subscribe(this, target, input, options, parent);

  compile(schema: AnySchema, direction: SchemaDirection): OperationSchema {
    return toOperationSchema(schema, direction, this.#schemaOptions);
  }

  warn(warning: RegistryWarning): void {
    try {
      this.#onWarning(warning);
    } catch {
      // There is nobody left to tell.
    }
  }

  /** Adds hooks inside those already there; returns how to take them out again. */
  addHooks(hooks: Hooks): () => void {
    // Functions of their own, so that hooks added twice run twice and are taken out one by one.
    const execute = hooks.execute && asynchronous(hooks.execute.bind(hooks));
    const subscribe = hooks.subscribe?.bind(hooks);
    if (execute !== undefined) this.executeHooks = [...this.executeHooks, execute];
    if (subscribe !== undefined) this.subscribeHooks = [...this.subscribeHooks, subscribe];
    return () => {
      this.executeHooks = this.executeHooks.filter((hook) => hook !== execute);
      this.subscribeHooks = this.subscribeHooks.filter((hook) => hook !== subscribe);
    };
  }

  addListener(listener: ChangeListener): () => void {
    // Wrapped, so that a listener added twice hears twice and leaves once.
    const added: ChangeListener = (changes) => listener(changes);
    this.#listeners.add(added);
    return () => void this.#listeners.delete(added);
  }

  announce(changes: readonly RegistryChange[]): void {
    if (changes.length === 0) return;
    for (const listener of [...this.#listeners]) notify(this, listener, changes);
  }
}

/** What a hook throws reaches the one outside it as a rejection, always. */
function asynchronous(hook: CallHook): CallHook {
  return async (call, next) => hook(call, next);
}

/** Outermost of all hooks, when asked for. */
const takeTime: CallHook = async (_, next) => {
  const start = monotonicNow();
  return withFacts(await next(), { durationMs: Math.round((monotonicNow() - start) * 1_000) / 1_000 });
};

/** A warning that comes with every call would drown the rest. */
function warnOnce(): (warning: RegistryWarning) => void {
  const given = new Set<string>();
  return ({ type, operationId, message, issues = [], cause }) => {
    const key = `${type} ${operationId}`;
    if (given.has(key)) return;
    given.add(key);
    const [first] = issues;
    const reason =
      first === undefined ? "" : ` At "${first.pointer}" expected ${first.expected}, found ${first.found}.`;
    const rest = cause === undefined ? [] : [cause];
    console.warn(`[waybill] ${message}${reason} (Shown once; set onWarning to hear of every case.)`, ...rest);
  };
}
