import { withFacts } from "../../core/envelope/envelope.ts";
import {
  type AnyOperation,
  CallError,
  defineOperation,
  localEnvelope,
  type ResponseEnvelope,
  Type,
  toolError,
} from "../../index.ts";
import { describeMissing, findParcel } from "./find-parcel.ts";
import { type Book, PARCEL_LIMITS, type Parcel, type ParcelEvent, ParcelSchema } from "./parcel.ts";
import type { ParcelBook } from "./parcel-book.ts";
import { planOperation } from "./plan-parcel.ts";
import { watchOperation } from "./watch-parcels.ts";

const Id = Type.String({
  minLength: 1,
  maxLength: 32,
  description: "The number on the waybill, such as P-1001.",
  examples: ["P-1001"],
});

const NOT_FOUND = {
  NOT_FOUND: { description: "There is no such parcel; `nearest` names those that look like it." },
};

/** The operations of the parcel office, on one book. */
export function parcelOperations(book: ParcelBook): AnyOperation[] {
  return [
    bookOperation(book),
    trackOperation(book),
    listOperation(book),
    deliverOperation(book),
    planOperation(),
    watchOperation(book),
  ] as AnyOperation[];
}

function bookOperation(book: ParcelBook) {
  return defineOperation({
    namespace: "parcel",
    name: "book",
    version: "1.0.0",
    type: "mutation",
    title: "Book a parcel",
    description: "Books a parcel and gives it a number. Parcels are kept when the process ends.",
    inputSchema: Type.Object(
      {
        to: Type.String({
          minLength: 1,
          maxLength: 120,
          description: "Where it goes.",
          examples: ["Lisbon"],
        }),
        kg: Type.Optional(
          Type.Number({ exclusiveMinimum: 0, maximum: 30, default: 1, description: "Its weight." }),
        ),
        note: Type.Optional(Type.String({ maxLength: 200, description: "For whoever carries it." })),
      },
      { additionalProperties: false },
    ),
    outputSchema: ParcelSchema,
    annotations: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
    errors: { RESOURCE_EXHAUSTED: { description: "The book is full." } },
    handler: ({ to, kg = 1, note }) =>
      book.change((before) => {
        if (before.parcels.length >= book.maxParcels) throw bookIsFull(book.maxParcels);
        const at = new Date().toISOString();
        const parcel: Parcel = {
          id: `P-${before.next}`,
          to,
          kg,
          ...(note !== undefined && { note }),
          status: "booked",
          bookedAt: at,
        };
        const parcels = [...before.parcels, parcel];
        return { book: withEvent({ ...before, parcels, next: before.next + 1 }, parcel, at), result: parcel };
      }),
  });
}

function trackOperation(book: ParcelBook) {
  return defineOperation({
    namespace: "parcel",
    name: "track",
    version: "1.0.0",
    type: "query",
    title: "Track a parcel",
    description: "Says where a parcel goes, what it weighs and whether it has arrived.",
    inputSchema: Type.Object({ id: Id }, { additionalProperties: false }),
    outputSchema: ParcelSchema,
    annotations: { readOnly: true, openWorld: false },
    errors: NOT_FOUND,
    handler: async ({ id }) => {
      const { parcels } = await book.read();
      return findParcel(parcels, id) ?? notFound(id, parcels);
    },
  });
}

const ListedSchema = Type.Object({
  parcels: Type.Array(ParcelSchema),
  total: Type.Integer({ description: "How many there are in all, of that status." }),
  nextCursor: Type.Optional(Type.String({ description: "Give it as `cursor` for the next page." })),
});

function listOperation(book: ParcelBook) {
  return defineOperation({
    namespace: "parcel",
    name: "list",
    version: "1.0.0",
    type: "query",
    title: "List parcels",
    description: "Lists parcels in the order they were booked, page by page.",
    inputSchema: Type.Object(
      {
        status: Type.Optional(Type.Union([Type.Literal("booked"), Type.Literal("delivered")])),
        limit: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 100, default: 20, description: "Parcels of one page." }),
        ),
        cursor: Type.Optional(
          Type.String({ pattern: "^P-[0-9]{1,9}$", description: "Where the page before ended." }),
        ),
      },
      { additionalProperties: false },
    ),
    outputSchema: ListedSchema,
    annotations: { readOnly: true, openWorld: false },
    handler: async ({ status, limit = 20, cursor }) => {
      const { parcels } = await book.read();
      const fitting = parcels.filter((parcel) => status === undefined || parcel.status === status);
      const after = cursor === undefined ? 0 : numberOf(cursor);
      const rest = fitting.filter((parcel) => numberOf(parcel.id) > after);
      const page = rest.slice(0, limit);
      const last = page.at(-1);
      const data = { parcels: page, total: fitting.length };
      if (rest.length === page.length || last === undefined) return data;
      const envelope = localEnvelope({ ...data, nextCursor: last.id }, "parcel.list");
      return withFacts(envelope, { page: { next: last.id } });
    },
  });
}

function deliverOperation(book: ParcelBook) {
  return defineOperation({
    namespace: "parcel",
    name: "deliver",
    version: "1.0.0",
    type: "mutation",
    title: "Deliver a parcel",
    description: "Notes that a parcel has arrived, and who signed for it.",
    inputSchema: Type.Object(
      {
        id: Id,
        signedBy: Type.Optional(Type.String({ minLength: 1, maxLength: 120, description: "Who took it." })),
      },
      { additionalProperties: false },
    ),
    outputSchema: ParcelSchema,
    annotations: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
    errors: { ...NOT_FOUND, CONFLICT: { description: "The parcel has been delivered already." } },
    handler: ({ id, signedBy }) =>
      book.change<Parcel | ResponseEnvelope>((before) => {
        const found = findParcel(before.parcels, id);
        if (found === undefined) return { book: before, result: notFound(id, before.parcels) };
        if (found.status === "delivered") return { book: before, result: alreadyDelivered(found) };
        const at = new Date().toISOString();
        const delivered: Parcel = {
          ...found,
          status: "delivered",
          deliveredAt: at,
          ...(signedBy !== undefined && { signedBy }),
        };
        const parcels = before.parcels.map((parcel) => (parcel === found ? delivered : parcel));
        return { book: withEvent({ ...before, parcels }, delivered, at), result: delivered };
      }),
  });
}

function numberOf(id: string): number {
  return Number(id.slice(2));
}

function withEvent(book: Book, { id, status, to }: Parcel, at: string): Book {
  const event: ParcelEvent = { sequence: book.sequence + 1, at, id, what: status, to };
  return { ...book, sequence: event.sequence, events: [...book.events, event].slice(-PARCEL_LIMITS.events) };
}

function notFound(id: string, parcels: readonly Parcel[]): ResponseEnvelope {
  return toolError(null, { code: "NOT_FOUND", ...describeMissing(id, parcels) });
}

function alreadyDelivered(parcel: Parcel): ResponseEnvelope {
  const { id, deliveredAt, signedBy } = parcel;
  const by = signedBy === undefined ? "" : ` to ${signedBy}`;
  return toolError(parcel, {
    code: "CONFLICT",
    message: `${id} was delivered${by} already, at ${deliveredAt}.`,
  });
}

function bookIsFull(most: number): CallError {
  return new CallError(
    "RESOURCE_EXHAUSTED",
    `The book is full: it holds ${most} parcels. Move parcels.json out of the state folder to begin a new one.`,
  );
}
