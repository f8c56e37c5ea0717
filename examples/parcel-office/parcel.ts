import { type Static, Type } from "waybill";

/** Bounds of the parcel office. */
export const PARCEL_LIMITS = {
  /** Parcels in the book; one more is `RESOURCE_EXHAUSTED`. */
  parcels: 10_000,
  /** Events that are kept for those who watch; older ones go. */
  events: 1_000,
  /** Bytes of the file that are read. */
  fileBytes: 67_108_864,
} as const;

const Place = Type.String({ minLength: 1, maxLength: 120 });
const Moment = Type.String({ format: "date-time", maxLength: 40 });

/** A parcel as the office knows it. */
export const ParcelSchema = Type.Object(
  {
    id: Type.String({ pattern: "^P-[0-9]{1,9}$", description: "The number on the waybill." }),
    to: Place,
    kg: Type.Number({ exclusiveMinimum: 0, maximum: 30 }),
    note: Type.Optional(Type.String({ maxLength: 200 })),
    status: Type.Union([Type.Literal("booked"), Type.Literal("delivered")]),
    bookedAt: Moment,
    deliveredAt: Type.Optional(Moment),
    signedBy: Type.Optional(Place),
  },
  { additionalProperties: false },
);

/** Something that happened to a parcel. */
export const ParcelEventSchema = Type.Object(
  {
    sequence: Type.Integer({ minimum: 1 }),
    at: Moment,
    id: Type.String(),
    what: Type.Union([Type.Literal("booked"), Type.Literal("delivered")]),
    to: Place,
  },
  { additionalProperties: false },
);

/** What the file holds. */
export const BookSchema = Type.Object({
  version: Type.Literal(1),
  /** The number of the next parcel. */
  next: Type.Integer({ minimum: 1, maximum: 999_999_999 }),
  /** That of the last event; never reused. */
  sequence: Type.Integer({ minimum: 0 }),
  parcels: Type.Array(ParcelSchema),
  events: Type.Array(ParcelEventSchema),
});

export type Parcel = Static<typeof ParcelSchema>;
export type ParcelEvent = Static<typeof ParcelEventSchema>;
export type Book = Static<typeof BookSchema>;

/** What is in the book before anybody has written in it, so that there is something to look up. */
export const FIRST_BOOK: Book = {
  version: 1,
  next: 1004,
  sequence: 4,
  parcels: [
    parcel("P-1001", "Lisbon", 2.5, "08:15", { deliveredAt: day("16:40"), signedBy: "Ines" }),
    parcel("P-1002", "Basel", 0.8, "09:30", { note: "Fragile: glass." }),
    parcel("P-1003", "Oslo", 12, "11:05"),
  ],
  events: [
    { sequence: 1, at: day("08:15"), id: "P-1001", what: "booked", to: "Lisbon" },
    { sequence: 2, at: day("09:30"), id: "P-1002", what: "booked", to: "Basel" },
    { sequence: 3, at: day("11:05"), id: "P-1003", what: "booked", to: "Oslo" },
    { sequence: 4, at: day("16:40"), id: "P-1001", what: "delivered", to: "Lisbon" },
  ],
};

function day(time: string): string {
  return `2026-01-05T${time}:00.000Z`;
}

function parcel(id: string, to: string, kg: number, time: string, more: Partial<Parcel> = {}): Parcel {
  const status = more.deliveredAt === undefined ? "booked" : "delivered";
  return { id, to, kg, status, bookedAt: day(time), ...more };
}

/** How many ids are offered in place of one that is not there. */
const OFFERED = 3;

/** Finds a parcel however its number is written: `p-1001` and `1001` are `P-1001`. */
export function findParcel(parcels: readonly Parcel[], id: string): Parcel | undefined {
  const spelt = spellId(id);
  return parcels.find((parcel) => parcel.id === spelt);
}

function spellId(id: string): string {
  const upper = id.trim().toUpperCase();
  return /^[0-9]/.test(upper) ? `P-${upper}` : upper;
}

/** What is said of a parcel that is not there. */
export function describeMissingParcel(id: string, parcels: readonly Parcel[]) {
  const nearest = nearestIds(
    spellId(id),
    parcels.map((parcel) => parcel.id),
  );
  const hint = nearest.length === 0 ? "" : `; the nearest are ${nearest.join(", ")}`;
  return { message: `There is no parcel ${JSON.stringify(id)}${hint}.`, details: { nearest } };
}

/** The ids that differ least from one that is not there, the likeliest first. */
function nearestIds(wanted: string, ids: readonly string[]): string[] {
  const judged = ids.map((id) => ({ id, difference: differenceOf(wanted, id) }));
  // Of ids that are equally near, the later ones: people ask for what they sent last.
  judged.sort((a, b) => a.difference - b.difference || (a.id < b.id ? 1 : -1));
  return judged.slice(0, OFFERED).map(({ id }) => id);
}

/** Letters that differ, counted from both ends and the smaller taken: a letter left out shifts all that follow. */
function differenceOf(a: string, b: string): number {
  const longer = Math.max(a.length, b.length);
  let fromStart = longer;
  let fromEnd = longer;
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] === b[i]) fromStart -= 1;
    if (a[a.length - 1 - i] === b[b.length - 1 - i]) fromEnd -= 1;
  }
  return Math.min(fromStart, fromEnd);
}
