import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { followPages } from "../src/core/client/pager.ts";
import { withFacts } from "../src/core/envelope/envelope.ts";
import { compileSchema, type JsonSchema } from "../src/index.ts";
import type { WholeResponse } from "../src/openapi/client/http-message.ts";
import { findPaging, type Paging } from "../src/openapi/client/paging/find-paging.ts";
import type { OperationPlan, ParameterPlan } from "../src/openapi/client/plan.ts";
import { toOutputSchema } from "../src/openapi/client/response/output-schema.ts";
import { createResponseReader } from "../src/openapi/client/response/read-response.ts";
import { makeParameter, makePlan, makeResponse } from "./openapi-plans.ts";

const THINGS = Array.from({ length: 23 }, (_, i) => ({ id: `t${i + 1}` }));
const SIZE = 5;

type Answer = (query: URLSearchParams, response: ServerResponse) => unknown;

interface PagingStyle {
  readonly name: string;
  readonly parameters: readonly ParameterPlan[];
  readonly schema: JsonSchema;
  readonly answer: Answer;
  readonly headers?: Readonly<Record<string, JsonSchema>>;
}

const INTEGER = { type: "integer" };
const STRING = { type: "string" };
const LIST = { type: "array", items: { type: "object", properties: { id: STRING } } };
const object = (properties: Record<string, JsonSchema>): JsonSchema => ({ type: "object", properties });
const numberIn = (query: URLSearchParams, name: string, otherwise: number) =>
  Number(query.get(name) ?? otherwise);
const from = (start: number, size = SIZE) => THINGS.slice(start, start + size);

const STYLES: readonly PagingStyle[] = [
  {
    name: "link",
    parameters: [makeParameter("page", INTEGER)],
    schema: LIST,
    headers: { link: STRING },
    answer(query, response) {
      const page = numberIn(query, "page", 1);
      const links =
        page * SIZE < THINGS.length
          ? [`</api/things?page=${page + 1}>; rel="next"`, "</api/things?page=5>; rel=last"]
          : [];
      if (links.length > 0) response.setHeader("link", links);
      return from((page - 1) * SIZE);
    },
  },
  {
    name: "cursor",
    parameters: [makeParameter("cursor", STRING)],
    schema: object({ items: LIST, next_cursor: { type: ["string", "null"] } }),
    answer(query) {
      const start = numberIn(query, "cursor", 0);
      const next = start + SIZE;
      return { items: from(start), next_cursor: next < THINGS.length ? String(next) : null };
    },
  },
  {
    name: "address among the data",
    parameters: [makeParameter("offset", INTEGER), makeParameter("limit", INTEGER)],
    schema: object({ results: LIST, next: { type: ["string", "null"], format: "uri" } }),
    answer(query) {
      const next = numberIn(query, "offset", 0) + SIZE;
      return {
        results: from(next - SIZE),
        next: next < THINGS.length ? `http://127.0.0.1/api/things?offset=${next}&limit=${SIZE}` : null,
      };
    },
  },
  {
    name: "last id",
    parameters: [makeParameter("starting_after", STRING)],
    schema: object({ data: LIST, has_more: { type: "boolean" } }),
    answer(query) {
      const start = THINGS.findIndex(({ id }) => id === query.get("starting_after")) + 1;
      return { data: from(start), has_more: start + SIZE < THINGS.length };
    },
  },
  {
    name: "offset",
    parameters: [makeParameter("offset", INTEGER), makeParameter("limit", { ...INTEGER, default: SIZE })],
    schema: object({ items: LIST }),
    answer: (query) => ({ items: from(numberIn(query, "offset", 0), numberIn(query, "limit", SIZE)) }),
  },
  {
    name: "page",
    parameters: [makeParameter("page", INTEGER)],
    schema: object({ items: LIST }),
    answer: (query) => ({ items: from((numberIn(query, "page", 1) - 1) * SIZE) }),
  },
];

const stops: (() => void)[] = [];
afterAll(() => {
  for (const stop of stops) stop();
});

async function serve(answer: Answer): Promise<string> {
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { searchParams } = new URL(request.url ?? "", "http://x");
    const body = JSON.stringify(answer(searchParams, response));
    response.setHeader("content-type", "application/json");
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`;
}

async function get(base: string, input: unknown): Promise<WholeResponse> {
  const query = new URLSearchParams(Object.entries((input ?? {}) as Record<string, string>));
  const response = await fetch(`${base}/things?${query}`, { headers: { connection: "close" } });
  const body = new Uint8Array(await response.arrayBuffer());
  const headers = Object.fromEntries(response.headers.entries());
  return { status: response.status, headers, attempts: 1, url: response.url, body, delimited: true };
}

function planOf({ parameters, schema, headers }: PagingStyle, url: string): OperationPlan {
  const responses = [makeResponse("200", { "application/json": schema }, headers)];
  return makePlan({ parameters, responses, servers: [{ url, variables: {} }] });
}

describe("pages of a real server", () => {
  it.each(STYLES)("RE-27 gives every item once and stops at the last page: $name", async (style) => {
    const base = await serve(style.answer);
    const plan = planOf(style, base);
    const output = toOutputSchema(plan) as JsonSchema;
    const schema = compileSchema(output);
    const paging = findPaging(plan, output) as Paging;
    const read = createResponseReader(plan, { operationId: "shop.things" });
    const seen: unknown[] = [];
    const facts: unknown[] = [];
    const fetchPage = async (input: unknown) => {
      const envelope = read(await get(base, input));
      const page = paging.factsOf(envelope, input);
      return page === undefined ? envelope : withFacts(envelope, { page });
    };
    const walk = { operationId: "shop.things", pager: paging.pager, maxPages: 20, fetch: fetchPage };
    for await (const envelope of followPages(undefined, walk)) {
      expect(schema.check(envelope.data)).toBe(true);
      seen.push(
        ...(Array.isArray(envelope.data)
          ? envelope.data
          : (Object.values(envelope.data as object).find(Array.isArray) ?? [])),
      );
      facts.push(envelope.meta.waybill?.page);
    }
    expect(seen).toEqual(THINGS);
    expect(facts.at(-1)).toEqual({});
    expect(facts.slice(0, -1).every((page) => typeof (page as { next?: unknown }).next === "string")).toBe(
      true,
    );
  });
});
