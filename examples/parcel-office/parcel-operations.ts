import {
  type AnyOperation,
  CallError,
  defineOperation,
  outcomeOf,
  type ResponseEnvelope,
  result,
  Type,
  toolError,
  withCursor,
} from "waybill";
import {
  type Book,
  describeMissingParcel,
  findParcel,
  PARCEL_LIMITS,
  type Parcel,
  type ParcelEvent,
  ParcelEventSchema,
  ParcelSchema,
} from "./parcel.ts";
import type { ParcelBook } from "./parcel-book.ts";
import { ZONES } from "./tariff-data.ts";

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
        note: Type.Optional(Type.String({ maxLength: 200, description: "For the carrier." })),
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
      return result({ ...data, nextCursor: last.id }, { page: { next: last.id } });
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
  return toolError(null, { code: "NOT_FOUND", ...describeMissingParcel(id, parcels) });
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

const LARGEST_SMALL_KG = 5;
const CODES = ZONES.map(({ code }) => code);

interface Quote {
  readonly price: { readonly amount: number; readonly currency: string };
  readonly days: number;
}

interface Stock {
  readonly stock: readonly { readonly item: string; readonly boxes: number; readonly shelf: string }[];
}

/** Asks an HTTP API and an MCP server at once, and makes one answer of both. */
function planOperation() {
  return defineOperation({
    namespace: "parcel",
    name: "plan",
    version: "1.0.0",
    type: "query",
    title: "Plan a parcel",
    description: "Says what sending a parcel takes: the price, by tariff.quote, and a box, by depot.stock.",
    inputSchema: Type.Object(
      {
        zone: Type.Enum([...CODES], {
          description: "A part of the world with one price.",
          examples: ["europe"],
        }),
        kg: Type.Number({ exclusiveMinimum: 0, maximum: 30, description: "Its weight.", examples: [2.5] }),
      },
      { additionalProperties: false },
    ),
    outputSchema: Type.Object({
      price: Type.Object({ amount: Type.Number(), currency: Type.String() }),
      days: Type.Integer({ description: "Until it arrives." }),
      box: Type.Object({ item: Type.String(), boxes: Type.Integer(), shelf: Type.Optional(Type.String()) }),
    }),
    annotations: { readOnly: true, openWorld: false },
    handler: async ({ zone, kg }, { execute }) => {
      const item = kg > LARGEST_SMALL_KG ? "box-large" : "box-small";
      const [quoted, stocked] = await Promise.all([
        execute("tariff.quote", { zone, kg }),
        execute("depot.stock", { item }),
      ]);
      for (const envelope of [quoted, stocked]) if (outcomeOf(envelope) === "tool_error") return envelope;
      const { price, days } = quoted.data as Quote;
      const [box] = (stocked.data as Stock).stock;
      return { price, days, box: box ?? { item, boxes: 0 } };
    },
  });
}

/** How often the file is looked at for what other processes did, in milliseconds. */
const LOOK_MS = 250;

/** Streams what happens to parcels, whichever process it happens in. */
function watchOperation(book: ParcelBook) {
  return defineOperation({
    namespace: "parcel",
    name: "watch",
    version: "1.0.0",
    type: "subscription",
    title: "Watch parcels",
    description:
      "Tells what has happened to one parcel, or to all, and then what happens. Ends when that parcel is delivered, or after `limit` events.",
    inputSchema: Type.Object(
      {
        id: Type.Optional(
          Type.String({ minLength: 1, maxLength: 32, description: "One parcel. All of them without it." }),
        ),
        cursor: Type.Optional(
          Type.String({ pattern: "^[0-9]{1,15}$", description: "Goes on after the event with this cursor." }),
        ),
        limit: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 10_000, description: "Ends after so many." }),
        ),
      },
      { additionalProperties: false },
    ),
    outputSchema: ParcelEventSchema,
    annotations: { readOnly: true, openWorld: false },
    errors: { NOT_FOUND: { description: "There is no such parcel." } },
    handler: ({ id, cursor = "0", limit = Number.POSITIVE_INFINITY }, { signal }) =>
      follow(book, { id, after: Number(cursor), limit, signal }),
  });
}

interface Following {
  readonly id: string | undefined;
  readonly after: number;
  readonly limit: number;
  readonly signal: AbortSignal;
}

async function* follow(book: ParcelBook, { id, after, limit, signal }: Following) {
  const bell = createBell(book, signal);
  try {
    let now = await book.read();
    const wanted = id === undefined ? undefined : findOrThrow(now, id);
    let last = after;
    let told = 0;
    for (;;) {
      for (const event of eventsAfter(now, last)) {
        last = event.sequence;
        if (wanted !== undefined && event.id !== wanted) continue;
        yield withCursor(event, String(event.sequence));
        told += 1;
        if (told >= limit || (wanted !== undefined && event.what === "delivered")) return;
      }
      if (wanted !== undefined && isDelivered(now, wanted)) return;
      // A book that was begun anew counts from the start.
      if (now.sequence < last) last = 0;
      await bell.wait();
      if (signal.aborted) return;
      now = await book.read();
    }
  } finally {
    bell.end();
  }
}

function findOrThrow(book: Book, id: string): string {
  const found = findParcel(book.parcels, id);
  if (found !== undefined) return found.id;
  const { message, details } = describeMissingParcel(id, book.parcels);
  throw new CallError("NOT_FOUND", message, { details });
}

function isDelivered({ parcels }: Book, id: string): boolean {
  const found = parcels.find((parcel) => parcel.id === id);
  return found === undefined || found.status === "delivered";
}

/** Events stand in order, so that what is new is looked for from the end. */
function eventsAfter({ events }: Book, sequence: number): ParcelEvent[] {
  let first = events.length;
  while (first > 0 && (events[first - 1] as ParcelEvent).sequence > sequence) first -= 1;
  return events.slice(first);
}

/** Rings when this process changed the book, when it is time to look at the file, and when nobody listens any more. */
function createBell(book: ParcelBook, signal: AbortSignal): { wait(): Promise<void>; end(): void } {
  let ring = (): void => {};
  let isRung = false;
  const onRing = (): void => {
    isRung = true;
    ring();
  };
  const stop = book.onChange(onRing);
  signal.addEventListener("abort", onRing, { once: true });
  return {
    async wait() {
      if (!isRung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, LOOK_MS);
          ring = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      isRung = false;
    },
    end() {
      stop();
      signal.removeEventListener("abort", onRing);
    },
  };
}
