import { CallError, defineOperation, Type, withCursor } from "../../index.ts";
import { describeMissing, findParcel } from "./find-parcel.ts";
import { type Book, type ParcelEvent, ParcelEventSchema } from "./parcel.ts";
import type { ParcelBook } from "./parcel-book.ts";

/** How often the file is looked at for what other processes did, in milliseconds. */
const LOOK_MS = 250;

/** Streams what happens to parcels, whichever process it happens in. */
export function watchOperation(book: ParcelBook) {
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
  const { message, details } = describeMissing(id, book.parcels);
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
