import type { JsonValue } from "../json/json-value.ts";
import type { JsonSchemaObject } from "../schema/json-schema.ts";

/** A question for the person behind a call: a form to fill in, or an address to visit. */
export type ElicitRequest =
  | { readonly mode?: "form"; readonly message: string; readonly requestedSchema: JsonSchemaObject }
  | {
      readonly mode: "url";
      readonly message: string;
      readonly url: string;
      readonly elicitationId?: string | undefined;
    };

/** What the person said; `content` holds what was filled in. */
export interface ElicitAnswer {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Readonly<Record<string, unknown>> | undefined;
}

/** A request to the caller's language model; fields beyond these go on as they are. */
export interface SampleRequest {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly maxTokens: number;
  readonly systemPrompt?: string | undefined;
  readonly [field: string]: unknown;
}

/** What the model said. */
export interface SampleAnswer {
  readonly role: string;
  /** One content block, or several. */
  readonly content: unknown;
  readonly model: string;
  readonly stopReason?: string | undefined;
  readonly [field: string]: unknown;
}

/** A folder or other place the caller's side works in. */
export interface Root {
  readonly uri: string;
  readonly name?: string | undefined;
}

/** How a question is put. */
export interface AskOptions {
  /** Names the question among those of its call, for callers that answer by name. @default one that is made up */
  readonly key?: string | undefined;
}

/** The task that a call is, for a handler that relays it to where another task runs. */
export interface CallerTask {
  readonly id: string;
  /** What the handler noted in a process that is gone: it goes on from there, and begins nothing. @default the call is new */
  readonly handle?: JsonValue | undefined;
  /** Whether there is only something to end: the task was cancelled while nobody ran it. @default false */
  readonly isCancelled?: boolean | undefined;
  /** Whether the call is none yet, and may still become one; what it notes until then counts from then on. @default false */
  readonly isPossible?: boolean | undefined;
  /** Notes how another process goes on with the call; rejects where there is no room. The last note counts. */
  hold(handle: JsonValue): Promise<void>;
  /** Notes that nothing of the call has begun yet, so that another process can begin it, or that it begins; rejects where it has left this process. */
  wait?(isWaiting: boolean): Promise<void>;
  /** Tells what is going on, in words for people. */
  say(message: string): void;
}

/**
 * What may be asked of the caller while a call runs; what is absent cannot be asked. Each question comes with the signal of the
 * call, and with a key where the handler gave it one.
 */
export interface CallerSide {
  /** Who this is over several calls, compared by `===`: calls of sides with the same one are of one caller. @default each side is a caller of its own */
  readonly party?: object | string | undefined;
  /** Extensions of MCP that the caller's client knows, by name; a server is told of them as far as they pass through. @default not known */
  readonly extensions?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
  /** The task that the call is; calls within it are no tasks. @default it is none */
  readonly task?: CallerTask | undefined;
  elicit?(request: ElicitRequest, signal: AbortSignal, key?: string): Promise<ElicitAnswer>;
  /** Hears that what was asked for at an address is done there. */
  elicited?(elicitationId: string): void;
  sample?(request: SampleRequest, signal: AbortSignal, key?: string): Promise<SampleAnswer>;
  roots?(signal: AbortSignal, key?: string): Promise<readonly Root[]>;
}
