import { defineOperation, outcomeOf, Type } from "../../index.ts";
import { ZONES } from "./tariff-data.ts";

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
export function planOperation() {
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
