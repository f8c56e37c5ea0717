// @ts-check
import { defineOperation, OperationRegistry, Type } from "../dist/index.js";

const Parcel = Type.Object({
  code: Type.String(),
  state: Type.Union([Type.Literal("new"), Type.Literal("sent")]),
  weight: Type.Number(),
  to: Type.Object({ name: Type.String(), zip: Type.Optional(Type.String()) }),
  tags: Type.Array(Type.String()),
});

/** @param {string} code */
const parcel = (code) => ({
  code,
  state: /** @type {const} */ ("new"),
  weight: 2,
  to: { name: "Ada" },
  tags: ["a"],
});

const common = /** @type {const} */ ({ namespace: "parcel", version: "1.0.0" });

const Address = { type: "object", properties: { street: { type: "string" } }, required: ["street"] };

/** What the clients are generated for: inputs in a query and in a body, errors, streams, shared answers, and names that are nearly the same. */
export const registry = new OperationRegistry([
  defineOperation({
    ...common,
    name: "track",
    type: "query",
    description: "Finds a parcel.",
    inputSchema: Type.Object({ code: Type.String(), limit: Type.Optional(Type.Integer()) }),
    outputSchema: Parcel,
    errors: { NO_PARCEL: { httpStatus: 404, schema: Type.Object({ code: Type.String() }) } },
    handler: ({ code }) => parcel(code),
  }),
  defineOperation({
    ...common,
    name: "latest",
    type: "query",
    description: "Finds the latest parcel.",
    inputSchema: Type.Object({}),
    outputSchema: Parcel,
    handler: () => parcel("A-9"),
  }),
  defineOperation({
    ...common,
    name: "sender",
    type: "query",
    description: "Tells where parcels come from.",
    inputSchema: Type.Object({}),
    outputSchema: { $ref: "#/$defs/Address", $defs: { Address } },
    handler: () => ({ street: "Main Street 1" }),
  }),
  defineOperation({
    ...common,
    name: "send",
    type: "mutation",
    description: "Sends a parcel.",
    inputSchema: Type.Object({
      to: Type.Object({ name: Type.String(), zip: Type.Optional(Type.String()) }),
      weight: Type.Number(),
      express: Type.Optional(Type.Boolean()),
    }),
    outputSchema: Type.Object({ parcel: Parcel, price: Type.Number() }),
    handler: ({ weight, to }) => ({ parcel: { ...parcel("A-1"), weight, to }, price: weight * 3 }),
  }),
  defineOperation({
    ...common,
    name: "list/all",
    type: "query",
    description: "Lists parcels.",
    inputSchema: Type.Object({}),
    outputSchema: Type.Array(Parcel),
    handler: () => [parcel("A-1"), parcel("A-2")],
  }),
  defineOperation({
    ...common,
    name: "watch",
    type: "subscription",
    description: "Tells what happens.",
    inputSchema: Type.Object({}),
    outputSchema: Parcel,
    async *handler() {
      yield parcel("A-1");
    },
  }),
  ...["get-item", "get_item", "getItem"].map((name) =>
    defineOperation({
      ...common,
      name,
      type: "query",
      description: `Has a name like others: ${name}.`,
      inputSchema: Type.Object({ id: Type.String() }),
      outputSchema: Type.Object({ [name === "getItem" ? "camel" : name.replace("-", "")]: Type.String() }),
      handler: () => ({ [name === "getItem" ? "camel" : name.replace("-", "")]: name }),
    }),
  ),
]);
