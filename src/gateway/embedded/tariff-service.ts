import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parseJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { createPlainServer } from "../../http/listen.ts";
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
export async function startTariffService(): Promise<TariffService> {
  const server = createPlainServer((request, response) => {
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
      return { status: 200, body: (await import("./tariff-document.ts")).TARIFF_DOCUMENT };
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
  return parseJsonTextOrNone(Buffer.concat(chunks).toString("utf8"));
}

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
  const money = isPlainObject(body) ? body["amount"] : undefined;
  const to = isPlainObject(body) ? body["to"] : undefined;
  if (!isPlainObject(money) || typeof money["amount"] !== "number" || typeof to !== "string") {
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
