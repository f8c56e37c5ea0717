import { defineOperation, type Executor, OperationRegistry, Type, toolError } from "../index.ts";

const quote = defineOperation({
  namespace: "parcel",
  name: "quote",
  version: "1.0.0",
  type: "query",
  description: "Says what sending a parcel costs.",
  inputSchema: Type.Object({
    kg: Type.Number({ exclusiveMinimum: 0, maximum: 30 }),
    to: Type.String({ minLength: 1 }),
    express: Type.Optional(Type.Boolean({ default: false })),
  }),
  outputSchema: Type.Object({ to: Type.String(), price: Type.Number(), currency: Type.String() }),
  handler: ({ kg, to, express }) => ({ to, price: 5 + kg * (express ? 4 : 2), currency: "EUR" }),
});

/** Stands for an older system: a number kept as text, a note that is nobody's business, a field it does not know. */
const ARCHIVE: Readonly<Record<string, object>> = {
  "P-7": { id: "P-7", kg: "2.5", to: "Lisbon", internalNote: "fragile customer" },
};

const find = defineOperation({
  namespace: "parcel",
  name: "find",
  version: "1.0.0",
  type: "query",
  description: "Finds a parcel in the archive.",
  inputSchema: Type.Object({ id: Type.String() }),
  outputSchema: Type.Object({
    id: Type.String(),
    kg: Type.Number(),
    to: Type.String(),
    status: Type.String({ default: "in transit" }),
  }),
  // The archive promises nothing about its rows; the output schema is what callers can rely on.
  handler: ({ id }) => ARCHIVE[id] as never,
});

const cancel = defineOperation({
  namespace: "parcel",
  name: "cancel",
  version: "1.0.0",
  type: "mutation",
  description: "Cancels a parcel that has not left yet.",
  inputSchema: Type.Object({ id: Type.String() }),
  outputSchema: Type.Object({ cancelled: Type.Boolean() }),
  errors: [{ code: "ALREADY_LEFT", description: "The parcel is on its way." }],
  handler: ({ id }) =>
    toolError(
      { cancelled: false },
      { code: "ALREADY_LEFT", message: `${id} left this morning; ask for its return instead.` },
    ),
});

const refund = defineOperation({
  namespace: "parcel",
  name: "refund",
  version: "1.0.0",
  type: "mutation",
  description: "Pays a parcel back.",
  inputSchema: Type.Object({ id: Type.String() }),
  outputSchema: Type.Object({ refunded: Type.Boolean() }),
  access: { scopes: { allOf: ["refunds:write"] } },
  handler: () => ({ refunded: true }),
});

const audit = defineOperation({
  namespace: "parcel",
  name: "audit",
  version: "1.0.0",
  type: "query",
  description: "Reads the books; other operations may, callers may not.",
  visibility: "internal",
  handler: () => "the books",
});

const weigh = defineOperation({
  namespace: "parcel",
  name: "weigh",
  version: "1.0.0",
  type: "query",
  description: "Weighs a parcel on a scale that never settles.",
  handler: (_input, { signal }) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    }),
});

const follow = defineOperation({
  namespace: "parcel",
  name: "follow",
  version: "1.0.0",
  type: "subscription",
  description: "Tells where a parcel is, stop by stop.",
  inputSchema: Type.Object({ id: Type.String() }),
  outputSchema: Type.Object({ at: Type.String() }),
  async *handler() {
    yield { at: "Porto" };
    yield { at: "Coimbra" };
    yield { at: "Lisbon" };
  },
});

/** Makes the registry the tour calls into. */
export function createParcelOffice(): Executor {
  return new OperationRegistry([quote, find, cancel, refund, audit, weigh, follow]);
}
