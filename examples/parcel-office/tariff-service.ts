import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { quotePrice, RATES, ZONES, type Zone } from "./tariff-data.ts";

/** Bytes of a body that are read. */
const MOST_BYTES = 65_536;

/** A tariff service that listens on a loopback port. */
export interface TariffService {
  /** Where its OpenAPI document is. */
  readonly documentUrl: string;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Starts the service on a free port of this machine; it does not keep the process running. */
export async function startTariffService(
  create: (onRequest: RequestListener) => Server = createServer,
): Promise<TariffService> {
  const server = create((request, response) => {
    answerRequest(request).then(
      (answer) => send(response, answer),
      () => send(response, problem(500, "Something went wrong.")),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  server.unref();
  const { port } = server.address() as AddressInfo;
  return { documentUrl: `http://127.0.0.1:${port}/openapi.json`, close: () => end(server) };
}

function end(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function send(response: ServerResponse, { status, body }: Answer): void {
  const type = status < 400 ? "application/json" : "application/problem+json";
  response.writeHead(status, { "content-type": type });
  response.end(JSON.stringify(body));
}

function problem(status: number, detail: string, more: object = {}): Answer {
  const title = status === 404 ? "Not found" : status === 422 ? "Not known" : "Not understood";
  return { status, body: { type: "about:blank", title, status, detail, ...more } };
}

async function answerRequest(request: IncomingMessage): Promise<Answer> {
  const url = new URL(request.url ?? "/", "http://127.0.0.1");
  if (request.method === "POST" && url.pathname === "/convert") return convert(await readJson(request));
  if (request.method !== "GET") return problem(404, "There is nothing here.");
  switch (url.pathname) {
    case "/openapi.json":
      return { status: 200, body: TARIFF_DOCUMENT };
    case "/quote":
      return quote(url.searchParams);
    case "/zones":
      return { status: 200, body: ZONES.map(toZone) };
    default:
      return url.pathname.startsWith("/zones/")
        ? oneZone(url.pathname.slice("/zones/".length))
        : problem(404, "There is nothing here.");
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) return undefined;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

function toZone({ code, name, countries, days }: Zone) {
  return { code, name, countries, days };
}

function oneZone(code: string): Answer {
  const zone = ZONES.find((each) => each.code === code);
  if (zone !== undefined) return { status: 200, body: toZone(zone) };
  return problem(404, "There is no such zone.", { known: ZONES.map((each) => each.code) });
}

function quote(query: URLSearchParams): Answer {
  const kg = Number(query.get("kg") ?? "x");
  const zone = ZONES.find((each) => each.code === query.get("zone"));
  const service = query.get("service") ?? "standard";
  if (!(kg > 0 && kg <= 30)) return problem(400, "kg must be a number above 0 and up to 30.");
  if (zone === undefined) {
    return problem(400, "zone must be one of those known.", { known: ZONES.map((each) => each.code) });
  }
  if (service !== "standard" && service !== "express") {
    return problem(400, "service must be standard or express.");
  }
  return { status: 200, body: quotePrice(zone, kg, service, query.get("insured") === "true") };
}

function convert(body: unknown): Answer {
  const money = isObject(body) ? body["amount"] : undefined;
  const to = isObject(body) ? body["to"] : undefined;
  if (!isObject(money) || typeof money["amount"] !== "number" || typeof to !== "string") {
    return problem(400, "The body must hold an amount, its currency, and the currency to convert to.");
  }
  const from = rateOf(money["currency"]);
  const into = rateOf(to);
  if (from === undefined || into === undefined) {
    return problem(422, "A currency is not known.", { known: Object.keys(RATES) });
  }
  const amount = Math.round((money["amount"] / from) * into * 100) / 100;
  return { status: 200, body: { amount, currency: to } };
}

function rateOf(currency: unknown): number | undefined {
  return typeof currency === "string" && Object.hasOwn(RATES, currency) ? RATES[currency] : undefined;
}

const CODES = ZONES.map(({ code }) => code);

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

const answer = (description: string, schema: object) => ({
  description,
  content: { "application/json": { schema } },
});

const problemAnswer = (description: string) => ({
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
        400: problemAnswer("A parameter is missing or wrong."),
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
      responses: { 200: answer("The zone.", ref("Zone")), 404: problemAnswer("There is no such zone.") },
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
        400: problemAnswer("The body is not as described."),
        422: problemAnswer("A currency is not known."),
      },
    },
  },
};

/** The OpenAPI document of the tariff service, written by hand as those of others are. */
const TARIFF_DOCUMENT = {
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
