import { ResponseEnvelopeSchema } from "../core/envelope/envelope-schemas.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import type { CallErrorJSON } from "../core/errors/errors.ts";
import type { CallOrigin, Metadata } from "../core/operation/operation-context.ts";
import type { Static } from "../core/typed-schema/static.ts";
import { Type } from "../core/typed-schema/type.ts";

/** Bounds on the fields of events; what is over them is malformed. */
export const EVENT_LIMITS = {
  /** Characters of an operation's id: the longest namespace, a dot and the longest name. */
  operationId: 265,
  /** Characters of a request id. */
  requestId: 200,
  /** Characters of a signed token. */
  credential: 8_192,
  /** Characters of the message of an error. */
  message: 8_192,
} as const;

const RequestId = Type.String({
  minLength: 1,
  maxLength: EVENT_LIMITS.requestId,
  pattern: "^[\\x21-\\x7e]+$",
});
const OperationId = Type.String({ maxLength: EVENT_LIMITS.operationId });
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** Why a call ended without an answer: somebody gave up, time was up, a reader left, or the other side went away. */
export const ABORT_REASONS = ["aborted", "deadline", "left", "disconnected"] as const;

/** What each event carries beside its `type`. Unknown fields are tolerated, so that later versions can add some. */
export const CallEventSchema = {
  /** Somebody asks for an operation to be run. */
  "call.requested": Type.Object({
    requestId: RequestId,
    operationId: OperationId,
    input: Type.Optional(Type.Unknown()),
    /** Present for a subscription: how many yields may be sent before more are granted. */
    credit: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })),
    /** With credit: how many bytes of yields may be sent, the last of which may take more than is left. */
    creditBytes: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })),
    /** Milliseconds the caller will still wait; never a point in time, for clocks differ. */
    timeLeftMs: Type.Optional(Type.Number({ minimum: 0 })),
    /** From 2 on it is a retry, which only an operation declared idempotent runs again. */
    attempt: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
    /** How many calls are above this one, in whatever process. */
    depth: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000 })),
    /** The call above this one, for logs and traces. */
    parent: Type.Optional(Type.Object({ requestId: RequestId, operationId: OperationId })),
    metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    /** The caller listens to progress. */
    progress: Type.Optional(Type.Literal(true)),
    /** A signed token that says who is asking; nothing else in the event ever does. */
    credential: Type.Optional(Type.String({ minLength: 1, maxLength: EVENT_LIMITS.credential })),
  }),
  /** It ran, and this is the result: the only one of a call, or one yield of a subscription. */
  "call.responded": Type.Object({
    requestId: RequestId,
    output: ResponseEnvelopeSchema,
    /** The place of a yield in its stream, from 0 on. */
    sequence: Type.Optional(Count),
  }),
  /** A subscription has ended by itself, after this many yields. */
  "call.completed": Type.Object({ requestId: RequestId, count: Count }),
  /** Its sender, caller or handler, has given up. */
  "call.aborted": Type.Object({
    requestId: RequestId,
    reason: Type.Optional(Type.Union(ABORT_REASONS.map((reason) => Type.Literal(reason)))),
  }),
  /** It never ran, or broke. */
  "call.error": Type.Object({
    requestId: RequestId,
    error: Type.Object({
      code: Type.String({ minLength: 1, maxLength: 100 }),
      message: Type.String({ maxLength: EVENT_LIMITS.message }),
      retryable: Type.Boolean(),
      correctable: Type.Boolean(),
      httpStatus: Type.Optional(Type.Integer({ minimum: 400, maximum: 599 })),
      details: Type.Optional(Type.Unknown()),
    }),
    /** The service refused it, so that no handler saw it. */
    notRun: Type.Optional(Type.Literal(true)),
  }),
  /** The reader of a subscription has room for this many yields more. */
  "call.credit": Type.Object({
    requestId: RequestId,
    credit: Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 }),
    /** And for so many bytes. */
    bytes: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })),
  }),
  /** What the handler reports while it works; sent only to callers who listen. */
  "call.progress": Type.Object({ requestId: RequestId, value: Type.Optional(Type.Unknown()) }),
} as const;

/** The name of an event. */
export type CallEventType = keyof typeof CallEventSchema;

/** Why a call ended without an answer. */
export type AbortReason = (typeof ABORT_REASONS)[number];

/** An error as an event carries it. */
export interface CallErrorPayload extends CallErrorJSON {
  readonly httpStatus?: number;
}

interface OfRequest {
  readonly requestId: string;
}

/** Somebody asks for an operation to be run. */
export interface CallRequested extends OfRequest {
  readonly type: "call.requested";
  readonly operationId: string;
  readonly input?: unknown;
  readonly credit?: number | undefined;
  readonly creditBytes?: number | undefined;
  readonly timeLeftMs?: number | undefined;
  readonly attempt?: number | undefined;
  readonly depth?: number | undefined;
  readonly parent?: Omit<CallOrigin, "parent"> | undefined;
  readonly metadata?: Metadata | undefined;
  readonly progress?: true | undefined;
  readonly credential?: string | undefined;
}

/** It ran, and this is what came of it. */
export interface CallResponded extends OfRequest {
  readonly type: "call.responded";
  readonly output: ResponseEnvelope;
  readonly sequence?: number | undefined;
}

/** A subscription has ended by itself. */
export interface CallCompleted extends OfRequest {
  readonly type: "call.completed";
  readonly count: number;
}

/** Its sender has given up. */
export interface CallAborted extends OfRequest {
  readonly type: "call.aborted";
  readonly reason?: AbortReason | undefined;
}

/** It never ran, or broke. */
export interface CallFailed extends OfRequest {
  readonly type: "call.error";
  readonly error: CallErrorPayload;
  readonly notRun?: true | undefined;
}

/** A reader has room for more. */
export interface CallCredit extends OfRequest {
  readonly type: "call.credit";
  readonly credit: number;
  readonly bytes?: number | undefined;
}

/** A handler reports how far it is. */
export interface CallProgress extends OfRequest {
  readonly type: "call.progress";
  readonly value?: unknown;
}

/** What the asking side sends once its request is out. */
export type AskerEvent = CallAborted | CallCredit;

/** What the answering side sends. */
export type AnswerEvent = CallResponded | CallCompleted | CallAborted | CallFailed | CallProgress;

/** Tells whether an answer says that its sender cannot do what it is asked, or has no room for it, and that another may. */
export function turnedAway(event: AnswerEvent): "failed" | "full" | undefined {
  if (event.type !== "call.error" || !event.error.retryable) return undefined;
  const { code } = event.error;
  return code === "UNAVAILABLE" ? "failed" : code === "RESOURCE_EXHAUSTED" ? "full" : undefined;
}

/** Anything of the protocol. */
export type CallEvent = CallRequested | AskerEvent | AnswerEvent;

/** The fields of an event as its schema reads them. */
export type CallEventPayload<T extends CallEventType> = Static<(typeof CallEventSchema)[T]>;
