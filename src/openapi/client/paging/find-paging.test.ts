import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeParameter, makePlan, makeResponse } from "../../../../test/openapi-plans.ts";
import { CURSOR_PAGER } from "../../../core/client/pager.ts";
import { httpEnvelope, withFacts } from "../../../core/envelope/envelope.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import type { PagingRule } from "../openapi-options.ts";
import type { OperationPlan, ParameterPlan } from "../plan.ts";
import { findPaging, type Paging } from "./find-paging.ts";

const INTEGER = { type: "integer" };
const STRING = { type: "string" };
const LIST = { type: "array", items: { type: "object", properties: { id: STRING } } };
const page = makeParameter("page", INTEGER);
const perPage = makeParameter("per_page", { ...INTEGER, default: 2, maximum: 3 });
const object = (properties: Record<string, JsonSchema>): JsonSchema => ({ type: "object", properties });

function paged(
  parameters: readonly ParameterPlan[],
  output: JsonSchema | undefined,
  changes: Partial<OperationPlan> = {},
) {
  return findPaging(makePlan({ parameters, ...changes }), output) as Paging;
}

function follow(paging: Paging, data: unknown, input: unknown, headers: Record<string, string> = {}) {
  const envelope = httpEnvelope(data, { statusCode: 200, headers });
  const next = paging.pager.next(envelope, input);
  const page = paging.factsOf(envelope, input);
  if (page === undefined) return [page, next];
  // Whoever knows the facts alone asks for the same page.
  expect(CURSOR_PAGER.next(withFacts(envelope, { page }), input)).toEqual(next);
  const { input: _, ...facts } = page;
  return [facts, next];
}

describe("pages by link", () => {
  const next = (target: string) => ({ link: `<${target}>; rel="next"` });
  const path = "/users/{id}/things";
  const id = makeParameter("id", STRING, { in: "path" });
  const parameters = [
    id,
    page,
    makeParameter("q", STRING),
    makeParameter("tag", { type: "array", items: INTEGER }),
  ];
  const declared = { path, responses: [makeResponse("200", {}, { link: STRING })] };

  it("RE-27 puts what the address says into the input, as its schema wants it", () => {
    const target = "https://api.example/v1/users/7/things?page=2&q=2&tag=1&tag=2&unknown=x&__proto__=y";
    const [facts, input] = follow(
      paged(parameters, undefined, declared),
      [],
      { id: "7", q: "a" },
      next(target),
    );
    expect(facts).toEqual({ next: target });
    expect(input).toEqual({ id: "7", page: 2, q: "2", tag: [1, 2] });
  });

  it("RE-27 takes a page without a link for the last where links are declared, or spoken of", () => {
    expect(follow(paged(parameters, undefined, declared), [], {})).toEqual([{}, undefined]);
    const undeclared = paged(parameters, undefined, { path });
    expect(follow(undeclared, [], {})).toEqual([undefined, undefined]);
    expect(follow(undeclared, [], {}, { link: "</x>; rel=prev" })).toEqual([{}, undefined]);
    expect(follow(undeclared, [], {}, { link: "</style.css>; rel=preload" })).toEqual([undefined, undefined]);
    expect(follow(undeclared, [], {}, next("?page=3"))[1]).toEqual({ page: 3 });
  });

  it.each([
    "https://evil.example/v1/users/7/things?page=2",
    "https://api.example/v1/users/8/things?page=2",
    "https://api.example/v1/others?page=2",
    "javascript:alert(1)?page=2",
    "https://[",
    `?page=2&x=${"x".repeat(9_000)}`,
  ])("RE-27 follows no address that is not this operation's: %s", (target) => {
    const output = paged(parameters, undefined, declared);
    expect(follow(output, [], { id: "7" }, next(target))).toEqual([undefined, undefined]);
  });

  it("RE-27 fails on a page that no input asks for, with names that cannot do harm", () => {
    const paging = paged(parameters, undefined, declared);
    const target = `?${encodeURIComponent("\u001b[31mx\u202e")}=1&${"y".repeat(300)}=2&z=3&hidden=4`;
    const envelope = httpEnvelope([], { statusCode: 200, headers: next(target) });
    expect(paging.factsOf(envelope, {})).toBeUndefined();
    const message = `by "x", "${"y".repeat(79)}…", "z", for which the operation has no input`;
    expect(() => paging.pager.next(envelope, {})).toThrow(message);
  });

  it("RE-27 knows its own host where it is told", () => {
    const plan = makePlan({ parameters, path });
    const paging = findPaging(plan, undefined, { origin: "http://localhost:8080" }) as Paging;
    expect(follow(paging, [], {}, next("http://localhost/users/1/things?page=2"))[1]).toEqual({ page: 2 });
    expect(follow(paging, [], {}, next("https://api.example/users/1/things?page=2"))[1]).toBeUndefined();
  });

  it("RE-27 reads addresses among the data", () => {
    for (const [schema, data] of [
      [
        object({ next: STRING, results: LIST }),
        { next: "https://api.example/v1/things?page=2", results: [] },
      ],
      [object({ links: object({ next: STRING }) }), { links: { next: "/v1/things?page=2" } }],
      [
        object({ _links: object({ next: object({ href: STRING }) }) }),
        { _links: { next: { href: "/things?page=2" } } },
      ],
      [
        object({ "@odata.nextLink": STRING, value: LIST }),
        { "@odata.nextLink": "/things?page=2", value: [] },
      ],
    ] as const) {
      const paging = paged([page], schema);
      expect(follow(paging, data, { a: 1 })[1]).toEqual({ a: 1, page: 2 });
      expect(follow(paging, {}, {})).toEqual([{}, undefined]);
    }
  });
});

describe("pages by cursor", () => {
  it.each([
    ["cursor", object({ next_cursor: STRING }), { next_cursor: "c2" }],
    ["cursor", object({ cursor: STRING }), { cursor: "c2" }],
    [
      "cursor",
      object({ response_metadata: object({ next_cursor: STRING }) }),
      { response_metadata: { next_cursor: "c2" } },
    ],
    ["pageToken", object({ nextPageToken: STRING }), { nextPageToken: "c2" }],
    ["page_token", object({ meta: { $ref: "#/$defs/Meta" } }), { meta: { next_page_token: "c2" } }],
    [
      "after",
      object({ paging: object({ next: object({ after: STRING }) }) }),
      { paging: { next: { after: "c2" } } },
    ],
    [
      "after",
      object({ paging: object({ cursors: object({ after: STRING }) }) }),
      { paging: { cursors: { after: "c2" } } },
    ],
    ["page[cursor]", object({ meta: object({ nextCursor: STRING }) }), { meta: { nextCursor: "c2" } }],
    ["NextToken", object({ NextToken: STRING }), { NextToken: "c2" }],
    ["offset", object({ offset: STRING, records: LIST }), { offset: "c2", records: [] }],
    ["continuation", object({ continuation: STRING }), { continuation: "c2" }],
  ])("RE-27 finds the cursor for %s in %j", (name, schema, data) => {
    const $defs = { Meta: object({ next_page_token: STRING }) };
    const paging = paged([makeParameter(name, STRING)], { ...(schema as object), $defs });
    expect(follow(paging, data, { q: 1 })).toEqual([{ next: "c2" }, { q: 1, [name]: "c2" }]);
    expect(follow(paging, {}, { q: 1 })).toEqual([{}, undefined]);
    expect(follow(paging, JSON.parse(JSON.stringify(data).replace('"c2"', "null")), {})).toEqual([
      {},
      undefined,
    ]);
    expect(follow(paging, JSON.parse(JSON.stringify(data).replace("c2", "")), {})).toEqual([{}, undefined]);
  });

  it("RE-27 continues after the last item where pages say that there is more", () => {
    const paging = paged(
      [makeParameter("starting_after", STRING)],
      object({ data: LIST, has_more: { type: "boolean" } }),
    );
    const data = [{ id: "a" }, { id: "b" }];
    expect(follow(paging, { data, has_more: true }, undefined)).toEqual([
      { next: "b" },
      { starting_after: "b" },
    ]);
    expect(follow(paging, { data, has_more: false }, {})).toEqual([{}, undefined]);
    expect(follow(paging, { data }, {})).toEqual([undefined, undefined]);
  });

  it("RE-27 takes the number of the next page", () => {
    const paging = paged([page], object({ meta: object({ next_page: INTEGER }), items: LIST }));
    expect(follow(paging, { meta: { next_page: 3 }, items: [] }, {})[1]).toEqual({ page: 3 });
    expect(follow(paging, { meta: { next_page: null }, items: [1] }, {})).toEqual([{}, undefined]);
  });
});

describe("pages by number", () => {
  it("RE-27 believes X-Next-Page, whose emptiness is the end, as its absence is where it is declared", () => {
    const paging = paged([page, perPage], LIST);
    expect(follow(paging, [1], {}, { "x-next-page": "7" })).toEqual([{ next: "7" }, { page: 7 }]);
    expect(follow(paging, [1, 2], {}, { "x-next-page": "" })).toEqual([{}, undefined]);
    expect(follow(paging, [1, 2], {})[1]).toEqual({ page: 2 });
    const responses = [makeResponse("200", {}, { "X-Next-Page": STRING })];
    expect(follow(paged([page, perPage], LIST, { responses }), [1, 2], {})).toEqual([{}, undefined]);
  });

  it("RE-27 ends where a Link header speaks of other pages and not of the next", () => {
    const links = { link: '</things?page=1>; rel="first", </things?page=3>; rel="last"' };
    expect(follow(paged([page, perPage], LIST), [1, 2], { page: 3 }, links)).toEqual([{}, undefined]);
  });

  it("RE-27 counts pages until one is short or empty", () => {
    const paging = paged([page, perPage], LIST);
    expect(follow(paging, [1, 2], undefined)).toEqual([{ next: "2" }, { page: 2 }]);
    expect(follow(paging, [1, 2], { page: "2" })[1]).toEqual({ page: 3 });
    expect(follow(paging, [1], {})).toEqual([{}, undefined]);
    expect(follow(paging, [], {})).toEqual([{}, undefined]);
    expect(follow(paging, [1, 2], { per_page: 3 })).toEqual([{}, undefined]);
    expect(follow(paging, [1, 2, 3], { per_page: 9 })[1]).toEqual({ per_page: 9, page: 2 });
    expect(follow(paged([page], LIST), [1], {})[1]).toEqual({ page: 2 });
    const fromNought = paged([makeParameter("page", { ...INTEGER, default: 0 })], LIST);
    expect(follow(fromNought, [1], {})[1]).toEqual({ page: 1 });
  });

  it("RE-27 counts items, by as many as came", () => {
    const paging = paged(
      [makeParameter("offset", INTEGER), makeParameter("limit", INTEGER)],
      object({ items: LIST, total: INTEGER }),
    );
    expect(follow(paging, { items: [1, 2] }, { offset: 4, limit: 2 })).toEqual([
      { next: "6" },
      { offset: 6, limit: 2 },
    ]);
    expect(follow(paging, { items: [1] }, { limit: 2 })).toEqual([{}, undefined]);
    expect(follow(paging, { items: [1], total: 9 }, { limit: 2 })[1]).toEqual({ limit: 2, offset: 1 });
    expect(follow(paging, { items: [1, 2], total: 2 }, { limit: 2 })).toEqual([{}, undefined]);
    const scim = paged(
      [makeParameter("startIndex", INTEGER), makeParameter("count", INTEGER)],
      object({ Resources: LIST, totalResults: INTEGER }),
    );
    expect(follow(scim, { Resources: [1, 2], totalResults: 3 }, {})[1]).toEqual({ startIndex: 3 });
    expect(follow(scim, { Resources: [1], totalResults: 3 }, { startIndex: 3 })).toEqual([{}, undefined]);
  });

  it("RE-27 believes what a page says of its place", () => {
    const more = paged([page, perPage], object({ items: LIST, has_more: { type: "boolean" } }));
    expect(follow(more, { items: [1], has_more: true }, {})[1]).toEqual({ page: 2 });
    expect(follow(more, { items: [1, 2], has_more: false }, {})).toEqual([{}, undefined]);
    const pages = paged([page], object({ items: LIST, total_pages: INTEGER }));
    expect(follow(pages, { items: [1], total_pages: 2 }, {})[1]).toEqual({ page: 2 });
    expect(follow(pages, { items: [1], total_pages: 2 }, { page: 2 })).toEqual([{}, undefined]);
    const last = paged([page], object({ content: LIST, last: { type: "boolean" } }));
    expect(follow(last, { content: [1], last: true }, {})).toEqual([{}, undefined]);
    expect(follow(paged([page, perPage], LIST), [1, 2], {}, { "x-total-count": "2" })).toEqual([
      {},
      undefined,
    ]);
  });

  it("RE-27 finds no pages where there is no list, no number, or nothing to ask with", () => {
    const none = [undefined, undefined];
    expect(follow(paged([page], object({ a: LIST, b: LIST })), { a: [1], b: [1] }, {})).toEqual(none);
    expect(follow(paged([page], object({ name: STRING })), { name: "x" }, {})).toEqual(none);
    expect(
      follow(paged([makeParameter("from", STRING), makeParameter("limit", INTEGER)], LIST), [1], {}),
    ).toEqual(none);
    expect(follow(paged([makeParameter("offset", INTEGER)], LIST), [1], {})).toEqual(none);
    expect(follow(findPaging(makePlan(), LIST) as Paging, [1], {})).toEqual(none);
    expect(findPaging(makePlan({ method: "POST", parameters: [page] }), LIST)).toBeUndefined();
    expect(findPaging(makePlan({ waybill: {}, parameters: [page] }), LIST)).toBeUndefined();
    expect(findPaging(makePlan({ parameters: [page] }), LIST, { rule: false })).toBeUndefined();
  });
});

describe("pages by rule", () => {
  const body = { key: "body", required: true, content: [] };
  const parameters = [makeParameter("p", INTEGER), makeParameter("n", { ...INTEGER, default: 2 })];
  const plan = makePlan({ method: "POST", parameters, body });
  const ruled = (rule: PagingRule) => findPaging(plan, undefined, { rule }) as Paging;

  it("RE-27 goes by the rule, in any operation", () => {
    const cursor = ruled({ style: "cursor", input: "/body/start", next: "/deep/0/next" });
    expect(follow(cursor, { deep: [{ next: "x" }] }, { body: { q: 1 } })[1]).toEqual({
      body: { q: 1, start: "x" },
    });
    const header = ruled({ style: "cursor", input: "p", next: "X-Next" });
    expect(follow(header, "text", {}, { "x-next": "5" })).toEqual([{ next: "5" }, { p: 5 }]);
    expect(follow(header, "text", {})).toEqual([{}, undefined]);
    const offset = ruled({ style: "offset", input: "p", size: "n", items: "/rows" });
    expect(follow(offset, { rows: [1, 2] }, {})[1]).toEqual({ p: 2 });
    expect(follow(offset, { rows: [1] }, {})).toEqual([{}, undefined]);
    expect(follow(ruled({ style: "page", input: "p" }), [1], {})[1]).toEqual({ p: 2 });
    expect(follow(ruled({ style: "link" }), [], {}, { link: "<?p=4>; rel=next" })[1]).toEqual({ p: 4 });
  });

  it("RE-27 names the whole input where it is more than a cursor", () => {
    const facts = (parameter: string, input: unknown) => {
      const paging = paged([makeParameter(parameter, STRING)], object({ next_cursor: STRING }));
      return paging.factsOf(httpEnvelope({ next_cursor: "c" }, { statusCode: 200, headers: {} }), input);
    };
    expect(facts("cursor", { q: 1, cursor: "b" })).toEqual({ next: "c" });
    expect(facts("cursor", undefined)).toEqual({ next: "c" });
    expect(facts("after", { q: 1 })).toEqual({ next: "c", input: { q: 1, after: "c" } });
  });

  it("RE-27 takes a name for a header's where it looks like one or is declared", () => {
    const rule = { style: "cursor", input: "p", next: "Next" } as const;
    const declared = makePlan({ parameters, responses: [makeResponse("200", {}, { Next: STRING })] });
    expect(follow(findPaging(declared, undefined, { rule }) as Paging, [], {}, { next: "5" })[1]).toEqual({
      p: 5,
    });
    expect(() => ruled(rule)).toThrow(/paging\.next of POST \/things .*"\/Next"/);
  });

  it("RE-27 says which input there is not", () => {
    expect(() => ruled({ style: "page", input: "nope" })).toThrow(
      /paging\.input of POST \/things .*"p", "n"/,
    );
    expect(() => ruled({ style: "page", input: "p", size: "nope" })).toThrow(TypeError);
  });
});

describe("whatever comes back", () => {
  it("RE-27 never throws, never pollutes, and knows nothing of errors", () => {
    const pagings = [
      paged([page, perPage], object({ items: LIST, total: INTEGER, has_more: { type: "boolean" } })),
      paged([makeParameter("cursor", STRING)], object({ next_cursor: STRING })),
      paged([page], object({ next: STRING })),
      findPaging(makePlan({ body: { key: "__proto__", required: false, content: [] } }), undefined, {
        rule: {
          style: "cursor",
          input: "/__proto__/polluted",
          next: "/items",
        },
      }) as Paging,
    ];
    const hostile = fc.dictionary(
      fc.constantFrom("items", "total", "has_more", "next_cursor", "next", "__proto__"),
      fc.anything(),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...pagings),
        fc.oneof(hostile, fc.anything()),
        fc.anything(),
        fc.string(),
        (paging, data, input, link) => {
          follow(paging, data, input, { link });
          expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
        },
      ),
    );
    const error = httpEnvelope({ next_cursor: "x" }, { statusCode: 422, headers: {}, isError: true });
    expect(pagings[1]?.factsOf(error, {})).toBeUndefined();
  });
});
