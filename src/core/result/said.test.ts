import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { composeToolPayload } from "../../formats/index.ts";
import {
  isMarkedEnvelope,
  isResponseEnvelope,
  localEnvelope,
  type ResponseEnvelope,
  result,
  toolError,
} from "../envelope/envelope.ts";
import { defineOperation } from "../operation/operation.ts";
import { OperationRegistry } from "../registry/registry.ts";
import { type ResultSaid, SAID_LIMITS, type ToolErrorSaid } from "./said.ts";

type Author = "result" | "toolError";

/** Says something that its types may forbid. */
function say(author: Author, said: unknown): ResponseEnvelope {
  return author === "result" ? result(1, said as ResultSaid) : toolError(1, said as ToolErrorSaid);
}

/** The one sentence of a refusal; anything but a `TypeError` fails the test. */
function refusalOf(author: Author, said: unknown): string {
  try {
    say(author, said);
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).constructor).toBe(TypeError);
    return (error as Error).message;
  }
  throw new Error("It was taken.");
}

const saidBy = (author: Author, said: unknown) => say(author, said).meta.waybill;

const BOTH = ["result", "toolError"] as const;
const LINK = { uri: "https://example.com/1", name: "One" };
const HINT = { feature: "export", tier: "pro", reason: "Exports are part of it." };

/** Every field of each author, and a value that is right. */
const RIGHT = {
  summary: "Done",
  nextSteps: ["Ship it."],
  markdown: "## Done",
  content: [{ type: "image", data: "AAAA", mimeType: "image/png" }],
  links: [LINK],
  truncated: true,
  tokenUsage: { inline: 1, total: 2 },
  rateLimit: { remaining: 0, resetSeconds: 1.5 },
  capabilities: ["streaming"],
  upgradeHints: [HINT],
  _meta: { "com.example/a": { b: [1, null] } },
} as const;
const FIELDS: Readonly<Record<Author, Readonly<Record<string, unknown>>>> = {
  result: {
    ...RIGHT,
    status: "warn",
    details: ["a\nb"],
    page: { next: "p2", input: { a: 1 } },
  } satisfies Required<Record<keyof ResultSaid, unknown>>,
  toolError: {
    ...RIGHT,
    code: "NO_STOCK",
    message: "None.",
    category: "not_found",
    details: { left: 0 },
    recoverable: false,
    suggestedAction: "Order more.",
    nextTool: "order",
    operationId: "shop.order",
  } satisfies Required<Record<keyof ToolErrorSaid, unknown>>,
};
const ROWS = BOTH.flatMap((author) => Object.keys(FIELDS[author]).map((field) => ({ author, field })));

describe("what result() and toolError() take", () => {
  it.each(BOTH)("X-7 %s() takes every field at once, and gives an envelope of the right shape", (author) => {
    const envelope = say(author, FIELDS[author]);
    expect(isMarkedEnvelope(envelope)).toBe(true);
    expect(isResponseEnvelope(envelope)).toBe(true);
    expect(isResponseEnvelope(JSON.parse(JSON.stringify(envelope)))).toBe(true);
    expect(envelope.meta.waybill?.said).toMatchObject({
      summary: "Done",
      nextSteps: ["Ship it."],
      content: [{ type: "text", text: "## Done" }, ...RIGHT.content, { type: "resource_link", ...LINK }],
      tokenUsage: RIGHT.tokenUsage,
      upgradeHints: [HINT],
      _meta: RIGHT._meta,
    });
  });

  it("X-7 says nothing where nothing is said", () => {
    for (const said of [undefined, {}, Object.create(null), { summary: undefined, links: undefined }]) {
      expect(saidBy("result", said)).toBeUndefined();
      expect(saidBy("toolError", said)).toBeUndefined();
    }
    expect(saidBy("result", { markdown: "", content: [], links: [] })).toBeUndefined();
  });

  it.each(ROWS)("X-7 $author() leaves out $field where it is undefined", ({ author, field }) => {
    expect(saidBy(author, { [field]: undefined })).toBeUndefined();
  });

  it("X-7 takes one line of details as a text", () => {
    expect(saidBy("result", { details: "a\nb" })?.said).toEqual({ details: ["a\nb"] });
    expect(saidBy("toolError", { details: "a" })).toEqual({ said: { details: ["a"] } });
    expect(saidBy("toolError", { details: { a: 1 } })).toEqual({ details: { a: 1 } });
  });

  it("X-7 names the operation an error is of", () => {
    expect(toolError(1, { operationId: "a.b" }).meta).toMatchObject({ operationId: "a.b" });
    expect(toolError(1, {}).meta).toMatchObject({ operationId: "" });
  });

  it("X-7 keeps what was said when its author changes it afterwards", () => {
    const said = structuredClone(FIELDS["toolError"]) as Record<string, never>;
    const envelope = say("toolError", said);
    const before = structuredClone(envelope.meta);
    const [steps, usage, hints, meta, details] = [
      said["nextSteps"] as unknown as string[],
      said["tokenUsage"] as unknown as { inline: unknown },
      said["upgradeHints"] as unknown as { feature: string }[],
      said["_meta"] as unknown as Record<string, unknown>,
      said["details"] as unknown as Record<string, unknown>,
    ];
    steps.push("more");
    usage.inline = "many";
    (hints[0] as { feature: string }).feature = "other";
    meta["dev.waybill/x"] = 1;
    details["said"] = "forged";
    expect(envelope.meta).toEqual(before);
    const page = { next: "p2" } as { next: unknown };
    const paged = result(1, { page } as never);
    page.next = 7;
    expect(paged.meta.waybill?.page).toEqual({ next: "p2" });
  });
});

describe("fields of the wrong type", () => {
  const ODD: Readonly<Record<string, unknown>> = {
    null: null,
    "a number": 7,
    NaN: Number.NaN,
    "a text": "text",
    "an empty object": {},
    "a list of numbers": [1],
    "a list with a hole": new Array(1),
    true: true,
    "a function": () => "text",
    "a symbol": Symbol("s"),
    "a bigint": 1n,
    "a date": new Date(0),
    "a String object": Object("text"),
    "an error": new Error("text"),
    "a map": new Map([["inline", 1]]),
    "a promise": Promise.resolve("text"),
  };
  /** What is right by accident. */
  const RIGHT_ONES: Readonly<Record<string, readonly string[]>> = {
    "a text": [
      "summary",
      "message",
      "category",
      "code",
      "suggestedAction",
      "nextTool",
      "operationId",
      "markdown",
      "details",
    ],
    "an empty object": ["tokenUsage", "rateLimit", "_meta", "page", "toolError.details"],
    true: ["truncated", "recoverable"],
  };
  const isRight = (odd: string, author: Author, field: string) =>
    RIGHT_ONES[odd]?.some((name) => name === field || name === `${author}.${field}`) === true;
  const cases = ROWS.flatMap((row) =>
    Object.keys(ODD)
      .filter((odd) => !isRight(odd, row.author, row.field))
      .map((odd) => ({ ...row, odd })),
  );

  it.each(cases)("X-7 $author() refuses $odd as $field, naming it", ({ author, field, odd }) => {
    expect(refusalOf(author, { [field]: ODD[odd] })).toMatch(new RegExp(`^${field}\\b`));
  });

  it.each(BOTH)("X-7 %s() refuses anything but a plain object", (author) => {
    const odd = [
      null,
      1,
      "text",
      [],
      () => {},
      new Date(0),
      new Map(),
      Object.create({ summary: "inherited" }),
    ];
    for (const said of odd) expect(refusalOf(author, said)).toContain(`${author}()`);
    class Said {
      summary = "s";
    }
    expect(refusalOf(author, new Said())).toContain("plain object");
  });

  it.each([
    [{ nextSteps: ["a", 7] }, "nextSteps[1] must be a text; it is 7."],
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is looked at
    [{ details: ["a", , "b"] }, "details[1] must be a text; it is of type undefined."],
    [{ capabilities: [null] }, "capabilities[0] must be a text; it is null."],
    [{ upgradeHints: [HINT, { ...HINT, tier: 3 }] }, "upgradeHints[1].tier must be a text; it is 3."],
    [
      { upgradeHints: [{ feature: "f", tier: "pro" }] },
      "upgradeHints[0].reason must be a text; it is of type undefined.",
    ],
    [{ tokenUsage: { inline: Number.NaN } }, "tokenUsage.inline must be a number; it is NaN."],
    [{ tokenUsage: { total: "7" } }, "tokenUsage.total must be a number; it is of type string."],
    [
      { rateLimit: { remaining: Number.POSITIVE_INFINITY } },
      "rateLimit.remaining must be a number; it is Infinity.",
    ],
    [{ rateLimit: { resetSeconds: null } }, "rateLimit.resetSeconds must be a number; it is null."],
    [{ page: { next: 2 } }, "page.next must be a text; it is 2."],
    [{ status: "error" }, 'status must be "ok", "info", "warn"; return toolError() for an error.'],
    [{ status: "fine" }, 'status must be "ok", "info", "warn".'],
    [{ links: [LINK, { uri: "a:b" }] }, "links[1] must be a link: { uri, name }, both texts."],
    [
      { links: [{ ...LINK, type: "text", text: "x" }] },
      "links[0] must be a link: { uri, name }, both texts.",
    ],
    [
      { content: [{ type: "video", data: "AA==" }] },
      "content[0] must be a content block: text, image, audio, resource or resource_link.",
    ],
  ])("X-7 result() says where: %j", (said, message) => {
    expect(refusalOf("result", said)).toBe(message);
  });

  it("X-7 refuses what JSON cannot hold where a program reads it", () => {
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    let deep: Record<string, unknown> = {};
    for (let i = 0; i < 100_000; i++) deep = { deep };
    for (const odd of [
      circle,
      deep,
      { a: 1n },
      { a: Number.NaN },
      { a: [() => {}] },
      { a: new Map() },
      { a: new Error("x") },
    ]) {
      expect(refusalOf("result", { _meta: odd })).toMatch(/^_meta must be what JSON can hold/);
      const block = { type: "text", text: "x", _meta: odd };
      expect(refusalOf("result", { content: [block] })).toMatch(/^content\[0\] must be what JSON can hold/);
      expect(refusalOf("result", { links: [{ ...LINK, more: odd }] })).toMatch(
        /^links\[0\] must be what JSON can hold/,
      );
    }
    const written = saidBy("result", { _meta: { a: undefined, b: new Date(0) } })?.said?._meta;
    expect(written).toEqual({ b: "1970-01-01T00:00:00.000Z" });
  });

  it("X-7 keeps Waybill's own keys of _meta, and the place of a source's words", () => {
    expect(refusalOf("result", { _meta: { "dev.waybill/result": 1 } })).toContain('"dev.waybill/result"');
    expect(refusalOf("toolError", { details: { said: "x" } })).toMatch(/^details\.said /);
    expect(refusalOf("toolError", { details: { toJSON: () => ({ said: "x" }) } })).toMatch(/^details\.said /);
    expect(refusalOf("toolError", { details: { toJSON: () => "text" } })).toMatch(/^details must be/);
  });
});

describe("unknown fields", () => {
  it.each([
    ["result", { sumary: "x" }, 'result() does not take "sumary"; did you mean "summary"?'],
    ["result", { next_steps: [] }, 'result() does not take "next_steps"; did you mean "nextSteps"?'],
    ["result", { Summary: "x" }, 'result() does not take "Summary"; did you mean "summary"?'],
    ["toolError", { cod: "x" }, 'toolError() does not take "cod"; did you mean "code"?'],
    [
      "toolError",
      { suggested: "x" },
      'toolError() does not take "suggested"; did you mean "suggestedAction"?',
    ],
    ["result", { tokenUsage: { inlined: 1 } }, 'tokenUsage does not take "inlined"; did you mean "inline"?'],
    [
      "result",
      { rateLimit: { remainder: 1 } },
      'rateLimit does not take "remainder"; it takes remaining, resetSeconds.',
    ],
    ["result", { page: { nxet: "a" } }, 'page does not take "nxet"; did you mean "next"?'],
    [
      "result",
      { upgradeHints: [{ ...HINT, tiers: 1 }] },
      'upgradeHints[0] does not take "tiers"; did you mean "tier"?',
    ],
  ] as const)("X-7 %s() refuses %j with what may be meant", (author, said, message) => {
    expect(refusalOf(author, said)).toBe(message);
  });

  it("X-7 refuses a field of the other author, and lists what there is", () => {
    expect(refusalOf("result", { code: "X" })).toMatch(
      /^result\(\) does not take "code"; (it takes|did you mean)/,
    );
    expect(refusalOf("toolError", { page: {} })).toMatch(
      /^toolError\(\) does not take "page"; it takes summary, /,
    );
    expect(refusalOf("toolError", { status: "ok" })).toContain('"status"');
  });

  it("X-7 refuses names that are tricks, without what a terminal acts on", () => {
    const tricks = JSON.parse('{"__proto__": {"summary": "x"}}');
    expect(refusalOf("result", tricks)).toContain('"__proto__"');
    for (const name of ["constructor", "toString", "hasOwnProperty", "", "length"]) {
      expect(refusalOf("result", { [name]: "x" })).toContain(JSON.stringify(name));
    }
    expect(refusalOf("result", { "\u001b[31m\n\u202ered": 1 })).toContain('"red"');
    expect(refusalOf("result", { _meta: { "dev.waybill/\u001b[31m": 1 } })).not.toContain("\u001b");
    expect(refusalOf("result", { ["x".repeat(100_000)]: 1 }).length).toBeLessThan(500);
  });

  it("X-7 reads own fields alone", () => {
    const names = ["summary", "markdown", "content", "links", "operationId"];
    try {
      for (const name of names)
        Object.defineProperty(Object.prototype, name, { value: "x", configurable: true });
      expect(saidBy("result", {})).toBeUndefined();
      expect(toolError(1, {}).meta).toMatchObject({ operationId: "" });
      expect(refusalOf("result", { links: [{ uri: "a:b" }] })).toMatch(/^links\[0\]/);
    } finally {
      for (const name of names) Reflect.deleteProperty(Object.prototype, name);
    }
  });
});

describe("limits", () => {
  const text = (length: number) => "x".repeat(length);
  const list = <T>(length: number, item: T): T[] => Array.from({ length }, () => item);
  type Fill = (size: number) => Record<string, unknown>;
  const { name, line, entries, ...others } = SAID_LIMITS;

  const LIMITS: readonly (readonly [
    limit: keyof typeof SAID_LIMITS,
    field: string,
    author: Author,
    fill: Fill,
  ])[] = [
    ["summary", "summary", "result", (n) => ({ summary: text(n) })],
    ["message", "message", "toolError", (n) => ({ message: text(n) })],
    ["markdown", "markdown", "result", (n) => ({ markdown: text(n) })],
    ["line", "details", "result", (n) => ({ details: text(n) })],
    ["line", "details[1]", "toolError", (n) => ({ details: ["", text(n)] })],
    ["line", "nextSteps[0]", "result", (n) => ({ nextSteps: [text(n)] })],
    ["line", "suggestedAction", "toolError", (n) => ({ suggestedAction: text(n) })],
    ["line", "upgradeHints[0].feature", "result", (n) => ({ upgradeHints: [{ ...HINT, feature: text(n) }] })],
    ["line", "upgradeHints[0].tier", "result", (n) => ({ upgradeHints: [{ ...HINT, tier: text(n) }] })],
    ["line", "upgradeHints[0].reason", "result", (n) => ({ upgradeHints: [{ ...HINT, reason: text(n) }] })],
    ["name", "code", "toolError", (n) => ({ code: text(n) })],
    ["name", "category", "toolError", (n) => ({ category: text(n) })],
    ["name", "nextTool", "toolError", (n) => ({ nextTool: text(n) })],
    ["name", "capabilities[0]", "result", (n) => ({ capabilities: [text(n)] })],
    ["entries", "details", "result", (n) => ({ details: list(n, "x") })],
    ["entries", "nextSteps", "result", (n) => ({ nextSteps: list(n, "x") })],
    ["entries", "capabilities", "result", (n) => ({ capabilities: list(n, "x") })],
    ["entries", "upgradeHints", "result", (n) => ({ upgradeHints: list(n, HINT) })],
    ["entries", "links", "result", (n) => ({ links: list(n, LINK) })],
    ["entries", "content", "result", (n) => ({ content: list(n, { type: "text", text: "x" }) })],
  ];

  it("X-7 every limit is tried", () => {
    expect(new Set(LIMITS.map(([limit]) => limit))).toEqual(new Set(Object.keys(SAID_LIMITS)));
    expect({ name, line, entries, ...others }).toEqual(SAID_LIMITS);
  });

  it.each(LIMITS)("X-7 %s: %s of %s() may be as long, and not one longer", (limit, field, author, fill) => {
    const most = SAID_LIMITS[limit];
    const envelope = say(author, fill(most));
    expect(isResponseEnvelope(envelope)).toBe(true);
    const unit = limit === "entries" ? "entries" : "characters";
    expect(refusalOf(author, fill(most + 1))).toBe(`${field} may have at most ${most} ${unit}.`);
  });

  it("X-7 the length counts before cleaning, and nothing is cut", () => {
    const zero = "\u200b".repeat(SAID_LIMITS.summary);
    expect(saidBy("result", { summary: zero })).toBeUndefined();
    expect(refusalOf("result", { summary: `${zero}x` })).toContain("summary");
    const long = "é".repeat(SAID_LIMITS.line);
    expect(saidBy("result", { nextSteps: [long] })?.said?.nextSteps).toEqual([long]);
    expect(saidBy("result", { details: [long] })?.said?.details).toEqual([long]);
  });

  it("X-7 a list that claims to be huge is refused unread", () => {
    for (const field of ["details", "nextSteps", "capabilities", "links", "content", "upgradeHints"]) {
      expect(refusalOf("result", { [field]: new Array(4_294_967_295) })).toContain(
        `${field} may have at most`,
      );
    }
  });

  it("X-7 the facts of an error are bounded, not refused", () => {
    const circle: Record<string, unknown> = { name: "a" };
    circle["self"] = circle;
    const huge = {
      text: text(100_000),
      circle,
      count: Number.NaN,
      big: 1n,
      run: () => {},
      list: list(5_000, 1),
    };
    const details = saidBy("toolError", { details: huge })?.details as Record<string, unknown>;
    expect((details["list"] as unknown[]).length).toBeLessThan(3_000);
    expect(details).toMatchObject({ text: "[string of 100000 characters]", circle: { self: "[circular]" } });
    expect(JSON.parse(JSON.stringify(details))).toEqual(details);
    const tricks = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}');
    const kept = saidBy("toolError", { details: tricks })?.details as object;
    expect(Object.keys(kept)).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(kept)).toBe(Object.prototype);
  });
});

describe("cleaning", () => {
  const DIRTY = "a\u0000\u001b[31mb\u001b[0m\u202ec\u200b\ud800d\r\n\te\u2028f";
  const LINE = "abc\ufffdd e f";
  const TEXT = "abc\ufffdd\n\te\nf";

  it.each([
    ["result", { summary: DIRTY }, { said: { summary: LINE } }],
    ["result", { nextSteps: [DIRTY] }, { said: { nextSteps: [LINE] } }],
    ["result", { details: [DIRTY] }, { said: { details: [TEXT] } }],
    ["result", { details: DIRTY }, { said: { details: [TEXT] } }],
    ["result", { capabilities: [DIRTY] }, { said: { capabilities: [LINE] } }],
    [
      "result",
      { upgradeHints: [{ feature: DIRTY, tier: DIRTY, reason: DIRTY }] },
      { said: { upgradeHints: [{ feature: LINE, tier: LINE, reason: LINE }] } },
    ],
    ["toolError", { message: DIRTY }, { message: TEXT }],
    ["toolError", { details: [DIRTY] }, { said: { details: [TEXT] } }],
    ["toolError", { suggestedAction: DIRTY }, { said: { suggestedAction: TEXT } }],
    ["toolError", { code: DIRTY }, { code: LINE }],
    ["toolError", { category: DIRTY }, { said: { category: LINE } }],
    ["toolError", { nextTool: DIRTY }, { said: { nextTool: LINE } }],
  ] as const)("X-7 %s() takes out of %j what nobody sees or a terminal acts on", (author, said, facts) => {
    expect(saidBy(author, said)).toEqual(facts);
  });

  it("X-7 leaves words, emoji and Markdown as they are", () => {
    const words = "Привет, 世界 👩‍👩‍👧‍👦 می\u200cخواهم — “ok” naïve";
    expect(saidBy("result", { summary: words, details: [words] })?.said).toEqual({
      summary: words,
      details: [words],
    });
    const markdown = "# A\r\n\u001b[31m\u0000\n\n```\n\tx\n```\n";
    expect(saidBy("result", { markdown })?.said?.content).toEqual([{ type: "text", text: markdown }]);
  });

  it("X-7 leaves no control character in any line, whatever is said, and adds nothing", () => {
    const unit = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
      fc.constantFrom("\u001b", "[", "\r", "\n", "\u202e", "\u2066", "\ud83d", "\udc00", "\u0085", " "),
    );
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 40 }), (text) => {
        const { code, message, said } = saidBy("toolError", {
          summary: text,
          nextSteps: [text],
          details: [text],
          message: text,
          code: text,
        }) as { code: string; message: string; said: Record<string, string & string[]> };
        const lines = [code ?? "", said["summary"] ?? "", said["nextSteps"]?.[0]] as string[];
        for (const line of lines) expect(line).not.toMatch(/[\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069]/u);
        for (const line of [message, said["details"]?.[0] as string]) {
          expect(line).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069]/u);
        }
        for (const line of [...lines, message]) expect(line.length).toBeLessThanOrEqual(text.length);
      }),
      runs(300),
    );
  });
});

describe("values that fight back", () => {
  const boom = () => {
    throw new RangeError("boom");
  };
  const trapped = (target: object) =>
    new Proxy(target, { get: boom, ownKeys: boom, getOwnPropertyDescriptor: boom, has: boom });
  const revoked = (target: object) => {
    const { proxy, revoke } = Proxy.revocable(target, {});
    revoke();
    return proxy;
  };

  it.each(ROWS)("X-7 $author() names $field when it cannot be read", ({ author, field }) => {
    const said = Object.defineProperty({}, field, { get: boom, enumerable: true });
    expect(refusalOf(author, said)).toBe(`${field} cannot be read.`);
  });

  it("X-7 keeps what a getter threw as the cause", () => {
    const said = {
      summary: "s",
      get nextSteps() {
        return boom();
      },
    };
    expect(() => result(1, said)).toThrow(expect.objectContaining({ cause: expect.any(RangeError) }));
  });

  it.each(ROWS.filter(({ field }) => typeof FIELDS.result[field] === "object" || field === "details"))(
    "X-7 $author() names $field when it is a proxy that throws",
    ({ author, field }) => {
      const target = FIELDS[author][field] as object;
      for (const odd of [trapped(target), revoked(target)]) {
        expect(refusalOf(author, { [field]: odd })).toMatch(new RegExp(`^${field}`));
      }
    },
  );

  it.each([
    ["nextSteps[0]", { nextSteps: Object.defineProperty([], 0, { get: boom, enumerable: true }) }],
    [
      "upgradeHints[0].tier",
      {
        upgradeHints: [
          {
            ...HINT,
            get tier() {
              return boom();
            },
          },
        ],
      },
    ],
    [
      "tokenUsage.inline",
      {
        tokenUsage: {
          get inline() {
            return boom();
          },
        },
      },
    ],
    [
      "page.next",
      {
        page: {
          get next() {
            return boom();
          },
        },
      },
    ],
    [
      "_meta",
      {
        _meta: {
          a: {
            get b() {
              return boom();
            },
          },
        },
      },
    ],
    [
      "links[0]",
      {
        links: [
          {
            ...LINK,
            get uri() {
              return boom();
            },
          },
        ],
      },
    ],
    ["links[0]", { links: [revoked(LINK)] }],
    [
      "content[0]",
      {
        content: [
          {
            type: "text",
            get text() {
              return boom();
            },
          },
        ],
      },
    ],
    ["content[0]", { content: [trapped({ type: "text", text: "x" })] }],
    ["upgradeHints[0]", { upgradeHints: [revoked(HINT)] }],
  ])("X-7 names %s when what is inside cannot be read", (at, said) => {
    expect(refusalOf("result", said).startsWith(at)).toBe(true);
  });

  it.each(BOTH)("X-7 %s() refuses a proxy that throws for all of it", (author) => {
    expect(refusalOf(author, trapped({}))).toContain(`${author}()`);
    expect(refusalOf(author, revoked({}))).toContain(`${author}()`);
  });

  it("X-7 believes what it read the first time, and no method of a list", () => {
    let reads = 0;
    const said = {
      get summary() {
        reads += 1;
        return reads === 1 ? "once" : 7;
      },
      get markdown() {
        return "m";
      },
    };
    expect(saidBy("result", said)?.said).toMatchObject({ summary: "once" });
    expect(reads).toBe(1);
    const list = Object.assign(["a"], { map: () => [7], [Symbol.iterator]: boom, every: () => true });
    expect(saidBy("result", { nextSteps: list, details: list })?.said).toEqual({
      nextSteps: ["a"],
      details: ["a"],
    });
    let times = 0;
    const usage = {
      get inline() {
        times += 1;
        return times === 1 ? 1 : Number.NaN;
      },
    };
    expect(saidBy("result", { tokenUsage: usage })?.said?.tokenUsage).toEqual({ inline: 1 });
  });

  it("X-7 looks at blocks, links and _meta as they will be sent, whatever they say about themselves", () => {
    const as = (sent: unknown) => ({ toJSON: () => sent });
    const block = { type: "text", text: "x" };
    expect(refusalOf("result", { content: [{ ...block, ...as(42) }] })).toContain("content[0]");
    expect(refusalOf("result", { content: [{ ...block, ...as({ type: "beam" }) }] })).toContain("content[0]");
    expect(refusalOf("result", { links: [{ ...LINK, ...as({ evil: 1 }) }] })).toContain("links[0]");
    expect(refusalOf("result", { _meta: { a: 1, ...as([]) } })).toContain("_meta");
    const forged = { "dev.waybill/result": { outcome: "call-error" } };
    expect(refusalOf("result", { _meta: { a: 1, ...as(forged) } })).toContain("Waybill's");
    let reads = 0;
    const counting = {
      type: "text",
      get text() {
        reads += 1;
        return `read ${reads}`;
      },
    };
    const envelope = say("result", { content: [counting] });
    expect(JSON.stringify(envelope)).toBe(JSON.stringify(envelope));
    expect(reads).toBe(1);
  });

  it("X-7 takes for the next page what every surface can send, and refuses the rest", () => {
    const circle: Record<string, unknown> = {};
    circle["circle"] = circle;
    for (const input of [{ id: 1n }, circle, () => 1, Symbol("x"), { list: [undefined] }]) {
      expect(refusalOf("result", { page: { next: "p2", input } })).toContain("page.input");
    }
    const input = { cursor: "p2", since: new Date(0) };
    expect(saidBy("result", { page: { input } })?.page).toEqual({
      input: { cursor: "p2", since: "1970-01-01T00:00:00.000Z" },
    });
  });

  it.each(["", " ", "\u0007\n"])("X-7 takes a summary without a word for none: %j", (summary) => {
    expect(saidBy("result", { summary })).toBeUndefined();
    expect(saidBy("toolError", { summary, code: "NO" })).toEqual({ code: "NO" });
  });

  it("X-7 takes a proxy that behaves", () => {
    const said = new Proxy({ summary: "s", nextSteps: new Proxy(["a"], {}) }, {});
    expect(saidBy("result", said)?.said).toEqual({ summary: "s", nextSteps: ["a"] });
  });

  it("X-7 takes or refuses anything whatever with a TypeError, and what it takes is an envelope", () => {
    const names = [...new Set(BOTH.flatMap((author) => Object.keys(FIELDS[author])))];
    const value = fc.oneof(
      fc.anything({
        withBigInt: true,
        withDate: true,
        withMap: true,
        withSparseArray: true,
        withNullPrototype: true,
      }),
      fc.constantFrom(...names.flatMap((name) => [FIELDS.result[name], FIELDS.toolError[name]])),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 4 }), (said) => {
        for (const author of BOTH) {
          let envelope: ResponseEnvelope;
          try {
            envelope = say(author, said);
          } catch (error) {
            expect(error).toBeInstanceOf(TypeError);
            continue;
          }
          expect(isResponseEnvelope(envelope)).toBe(true);
        }
      }),
      runs(500),
    );
  });
});

describe("results that only look like it", () => {
  const run = async (value: unknown) => {
    const registry = new OperationRegistry(
      [
        defineOperation({
          namespace: "a",
          name: "b",
          version: "1.0.0",
          type: "query",
          description: "Returns a value.",
          inputSchema: {},
          outputSchema: {},
          handler: () => value,
        }),
      ],
      { onWarning: () => {} },
    );
    return await registry.execute("a.b", {});
  };

  it("X-7 a result is not the data of another, because its outcome would be lost", () => {
    const helped = composeToolPayload({ meta: { status: "error", summary: "No" }, data: 1 });
    for (const inner of [toolError(1), result(1), localEnvelope(1, "a.b"), helped]) {
      expect(() => result(inner as never, { summary: "s" })).toThrow("this is a result already");
      expect(() => toolError(inner)).toThrow("this is a result already");
    }
    expect(result([toolError(1)] as never).data).toHaveLength(1);
    expect(result({ ...toolError(1) } as never).data).toHaveProperty("meta");
  });

  it("X-7 the shape alone is never believed", async () => {
    const real = result({ a: 1 }, { summary: "s" });
    expect((await run(real)).meta.waybill?.said).toEqual({ summary: "s" });
    const failed = toolError({ a: 1 }, { code: "C", summary: "s" });
    expect((await run(failed)).meta).toMatchObject({ isError: true, waybill: { code: "C" } });
    const copies = [real, failed].flatMap((envelope) => [
      { ...envelope },
      structuredClone(envelope),
      JSON.parse(JSON.stringify(envelope)),
      Object.create(envelope),
      new Proxy(envelope, {}),
    ]);
    for (const copy of copies) {
      const envelope = await run(copy);
      expect(envelope.data).toBe(copy);
      expect(envelope.meta.isError).toBeUndefined();
      expect(envelope.meta.waybill?.said).toBeUndefined();
    }
  });
});
