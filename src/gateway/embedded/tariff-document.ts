import { RATES, ZONES } from "./tariff-data.ts";

const CODES = ZONES.map(({ code }) => code);

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

const answer = (description: string, schema: object) => ({
  description,
  content: { "application/json": { schema } },
});

const problem = (description: string) => ({
  description,
  content: { "application/problem+json": { schema: ref("Problem") } },
});

const object = (properties: object, required: readonly string[] = Object.keys(properties)) => ({
  type: "object",
  required,
  properties,
  additionalProperties: false,
});

const SCHEMAS = {
  ZoneCode: { type: "string", enum: CODES, description: "A part of the world with one price." },
  Service: { type: "string", enum: ["standard", "express"], default: "standard" },
  Money: object({
    amount: { type: "number", minimum: 0 },
    currency: { type: "string", pattern: "^[A-Z]{3}$", examples: ["EUR"] },
  }),
  Zone: object({
    code: ref("ZoneCode"),
    name: { type: "string" },
    countries: { type: "array", items: { type: "string", pattern: "^[A-Z]{2}$" } },
    days: object({ standard: { type: "integer" }, express: { type: "integer" } }),
  }),
  Quote: object({
    zone: ref("ZoneCode"),
    service: { type: "string", enum: ["standard", "express"] },
    kg: { type: "number" },
    price: ref("Money"),
    days: { type: "integer", description: "Until it arrives." },
    lines: {
      type: "array",
      description: "What the price is made of, in the same currency.",
      items: object({ what: { enum: ["base", "weight", "insurance"] }, amount: { type: "number" } }),
    },
  }),
  Problem: {
    type: "object",
    description: "RFC 9457.",
    required: ["title", "status"],
    properties: {
      type: { type: "string", format: "uri-reference" },
      title: { type: "string" },
      status: { type: "integer" },
      detail: { type: "string" },
      known: { type: "array", items: { type: "string" }, description: "What would have been understood." },
    },
  },
};

const KG = {
  name: "kg",
  in: "query",
  required: true,
  description: "Its weight.",
  schema: { type: "number", exclusiveMinimum: 0, maximum: 30, examples: [2.5] },
};

const PATHS = {
  "/quote": {
    get: {
      operationId: "quote",
      summary: "What a parcel costs",
      description: "Says what sending a parcel costs, what the price is made of, and how long it takes.",
      tags: ["prices"],
      parameters: [
        KG,
        { name: "zone", in: "query", required: true, schema: ref("ZoneCode"), example: "europe" },
        { name: "service", in: "query", schema: ref("Service") },
        { name: "insured", in: "query", schema: { type: "boolean", default: false } },
      ],
      responses: {
        200: answer("The price.", ref("Quote")),
        400: problem("A parameter is missing or wrong."),
      },
    },
  },
  "/zones": {
    get: {
      operationId: "zones",
      summary: "Where parcels go",
      description: "Lists the parts of the world that have a price.",
      tags: ["zones"],
      responses: { 200: answer("All zones.", { type: "array", items: ref("Zone") }) },
    },
  },
  "/zones/{code}": {
    get: {
      operationId: "zone",
      summary: "One zone",
      description: "Says which countries belong to a zone, and how long parcels take there.",
      tags: ["zones"],
      parameters: [
        {
          name: "code",
          in: "path",
          required: true,
          schema: { type: "string", maxLength: 40, examples: ["europe"] },
        },
      ],
      responses: { 200: answer("The zone.", ref("Zone")), 404: problem("There is no such zone.") },
    },
  },
  "/convert": {
    post: {
      operationId: "convert",
      summary: "Convert a price",
      description: `Converts an amount at a fixed rate. Knows ${Object.keys(RATES).join(", ")}.`,
      tags: ["prices"],
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: object({
              amount: ref("Money"),
              to: { type: "string", pattern: "^[A-Z]{3}$", examples: ["CHF"] },
            }),
            example: { amount: { amount: 10, currency: "EUR" }, to: "CHF" },
          },
        },
      },
      responses: {
        200: answer("The amount in the other currency.", ref("Money")),
        400: problem("The body is not as described."),
        422: problem("A currency is not known."),
      },
    },
  },
};

/** The OpenAPI document of the tariff service, written by hand as those of others are. */
export const TARIFF_DOCUMENT = {
  openapi: "3.1.0",
  info: {
    title: "Tariff",
    version: "1.0.0",
    description: "What sending a parcel costs, by weight and place.",
  },
  servers: [{ url: "/" }],
  tags: [{ name: "prices" }, { name: "zones" }],
  paths: PATHS,
  components: { schemas: SCHEMAS },
};
