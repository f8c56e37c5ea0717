import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { rejection } from "../../../test/make-operation.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import { answerQuestion, cleanForm, isShowableAddress, withDefaults } from "./caller-questions.ts";
import { MCP_LIMITS } from "./connection-options.ts";
import { CallersInFlight, ServerQuestions } from "./server-questions.ts";

const { signal } = new AbortController();
const form = { message: "m", requestedSchema: { type: "object" } };
const sampling = { messages: [{ role: "user", content: { type: "text", text: "t" } }], maxTokens: 5 };

function ask(
  method: string,
  params: Record<string, unknown>,
  caller: CallerSide | undefined,
  maxLength = 1_000,
) {
  return answerQuestion({ method, params, caller, roots: [], maxLength, signal });
}

const says = (answer: unknown): CallerSide => ({
  elicit: async () => answer as never,
  sample: async () => answer as never,
});

describe("a question to a caller", () => {
  it("Mcp: may be as long as allowed, and one character longer is refused", async () => {
    const length = JSON.stringify(form).length;
    const caller = says({ action: "decline" });
    expect(await ask("elicitation/create", form, caller, length)).toEqual({ action: "decline" });
    await expect(ask("elicitation/create", form, caller, length - 1)).rejects.toMatchObject({ code: -32602 });
  });

  it("Mcp: keeps an accepted answer and leaves content out of the others", async () => {
    const content = { yes: true };
    const accepted = await ask("elicitation/create", form, says({ action: "accept", content }));
    expect(accepted).toEqual({ action: "accept", content });
    const cancelled = await ask("elicitation/create", form, says({ action: "cancel", content }));
    expect(cancelled).toEqual({ action: "cancel" });
  });

  it("Mcp: fills an accepted answer with the defaults of the form, and no other", async () => {
    const properties = { name: { type: "string", default: "Ada" }, age: { type: "integer" } };
    const asked = { ...form, requestedSchema: { type: "object", properties } };
    const answers: [unknown, unknown][] = [
      [{ action: "accept" }, { action: "accept", content: { name: "Ada" } }],
      [
        { action: "accept", content: { age: 1 } },
        { action: "accept", content: { age: 1, name: "Ada" } },
      ],
      [{ action: "decline" }, { action: "decline" }],
    ];
    for (const [answer, sent] of answers)
      expect(await ask("elicitation/create", asked, says(answer))).toEqual(sent);
    const visit = { ...asked, mode: "url", url: "https://x.example/" };
    expect(await ask("elicitation/create", visit, says({ action: "accept" }))).toEqual({ action: "accept" });
  });

  it("Mcp: passes an address to visit, and a request to a model with the fields it does not know", async () => {
    const heard: unknown[] = [];
    const caller: CallerSide = {
      elicit: async (request) => {
        heard.push(request);
        return { action: "accept" };
      },
      sample: async (request) => {
        heard.push(request);
        return { role: "assistant", content: [], model: "m" };
      },
    };
    const visit = { mode: "url", message: "m", url: "https://x.example/", elicitationId: "e" };
    await ask("elicitation/create", visit, caller);
    await ask("sampling/createMessage", { ...sampling, later: 1, _meta: { progressToken: 1 } }, caller);
    expect(heard).toEqual([visit, { ...sampling, later: 1 }]);
  });

  it("Mcp: shows a person no hidden characters", async () => {
    const heard: unknown[] = [];
    const caller: CallerSide = {
      elicit: async (request) => {
        heard.push(request);
        return { action: "decline" };
      },
    };
    const schema = (title: string) => ({ type: "object", properties: { a: { type: "string", title } } });
    const message = "Pay\u202E\u001B[2J?";
    await ask("elicitation/create", { message, requestedSchema: schema("N\u200Bame") }, caller);
    await ask("elicitation/create", { mode: "url", message, url: "https://x.example/" }, caller);
    expect(heard).toEqual([
      { mode: "form", message: "Pay?", requestedSchema: schema("Name") },
      { mode: "url", message: "Pay?", url: "https://x.example/" },
    ]);
  });

  it.each([
    ["elicitation/create", { message: "m" }],
    ["elicitation/create", { message: "m", requestedSchema: { type: "string" } }],
    ["elicitation/create", { mode: "voice", message: "m" }],
    ["elicitation/create", { mode: "url", message: "m", url: "file:///etc/passwd" }],
    ["elicitation/create", { mode: "url", message: "m", url: "https://bank.example@evil.example/" }],
    ["elicitation/create", { mode: "url", message: "m", url: "http://x.example/" }],
    ["sampling/createMessage", { ...sampling, messages: ["x"] }],
    ["sampling/createMessage", { ...sampling, maxTokens: 0 }],
  ])("Mcp: is refused as malformed: %s with %j", async (method, params) => {
    await expect(ask(method, params, says({ action: "accept" }))).rejects.toMatchObject({ code: -32602 });
  });

  it.each([
    undefined,
    null,
    "yes",
    { action: "maybe" },
    { action: "accept", content: [1] },
    { action: "accept", content: { n: 1n } },
  ])("Mcp: is refused when the answer is %s", async (answer) => {
    await expect(ask("elicitation/create", form, says(answer))).rejects.toMatchObject({ code: -32603 });
  });

  it("Mcp: says nothing of why a caller failed, but for one that cannot", async () => {
    const fails = (error: Error): CallerSide => ({ elicit: () => Promise.reject(error) });
    const secret = ask("elicitation/create", form, fails(new Error("secret")));
    await expect(secret).rejects.toMatchObject({
      code: -32603,
      message: expect.not.stringContaining("secret"),
    });
    const unable = ask("elicitation/create", form, fails(new CallError("NOT_IMPLEMENTED")));
    await expect(unable).rejects.toMatchObject({ code: -32601 });
    await expect(ask("sampling/createMessage", sampling, {})).rejects.toMatchObject({ code: -32601 });
    await expect(ask("tasks/list", {}, says({}))).rejects.toMatchObject({ code: -32601 });
  });
});

describe("the callers in flight", () => {
  it("Mcp: agree only when all calls are of one caller, lists not counting", () => {
    const callers = new CallersInFlight();
    const [one, two] = [says(1), says(2)];
    callers.enter("tools/list", two);
    expect(callers.find()).toEqual({ kind: "none" });
    const first = callers.enter("tools/call", one);
    callers.enter("prompts/get", one);
    expect(callers.find()).toEqual({ kind: "one", caller: one });
    const second = callers.enter("tools/call", undefined);
    expect(callers.find()).toEqual({ kind: "several" });
    second();
    second();
    first();
    expect(callers.find()).toEqual({ kind: "one", caller: one });
  });
});

describe("questions that are open", () => {
  it("Mcp: are as many as allowed, and one more is refused", async () => {
    const questions = new ServerQuestions({ roots: [], limits: { ...MCP_LIMITS, openQuestions: 2 } });
    const heard: AbortSignal[] = [];
    const waits: CallerSide = {
      elicit: (_request, stop) => {
        heard.push(stop);
        return new Promise(() => {});
      },
    };
    const leave = questions.enter("tools/call", waits);
    const withdrawn = new AbortController();
    const first = rejection(questions.answer("elicitation/create", form, withdrawn.signal));
    const second = questions.answer("elicitation/create", form, signal);
    await expect(questions.answer("elicitation/create", form, signal)).rejects.toMatchObject({
      code: -32603,
    });
    withdrawn.abort();
    expect(heard.map((each) => each.aborted)).toEqual([true, false]);
    leave();
    expect(heard.map((each) => each.aborted)).toEqual([true, true]);
    // The server withdrew the first; whoever was to answer the second has left.
    expect(await first).toBeInstanceOf(Error);
    expect(await second).toEqual({ action: "cancel" });
  });

  it("Mcp: are ended for the server when their caller leaves, though others still wait", async () => {
    const questions = new ServerQuestions({ roots: [], limits: MCP_LIMITS });
    const never = () => new Promise<never>(() => {});
    const leave = questions.enter("tools/call", { elicit: never, sample: never });
    const answers = [
      questions.answer("elicitation/create", form, signal),
      questions.answer("sampling/createMessage", sampling, signal),
    ];
    const leaveToo = questions.enter("tools/call", { elicit: never });
    answers.push(questions.answer("roots/list", undefined, signal));
    leave(7);
    expect(await Promise.allSettled(answers)).toMatchObject([
      { value: { action: "cancel" } },
      { reason: { code: -1 } },
      { value: { roots: [] } },
    ]);
    questions.answered(7);
    const last = questions.answer("elicitation/create", form, signal);
    leaveToo();
    expect(await last).toEqual({ action: "cancel" });
  });
});

const schema = (properties: unknown) => ({ type: "object", properties });

describe("the defaults of an accepted answer", () => {
  it("Mcp: fill the fields that are missing, and no others", () => {
    const asked = schema({
      name: { type: "string", default: "Ada" },
      age: { type: "integer", default: 36 },
      score: { type: "number", default: 9.5 },
      sure: { type: "boolean", default: false },
      tags: { type: "array", items: { enum: ["a", "b"] }, default: ["a"] },
      open: { type: "string" },
    });
    expect(withDefaults({ name: "", age: undefined, more: 1 }, asked)).toEqual({
      name: "",
      age: 36,
      score: 9.5,
      sure: false,
      tags: ["a"],
      more: 1,
    });
    expect(withDefaults(undefined, asked)).toMatchObject({ name: "Ada" });
  });

  it.each([
    { type: "string", default: 1 },
    { type: "integer", default: 1.5 },
    { type: "number", default: "1" },
    { type: "boolean", default: null },
    { type: "array", default: [{}] },
    { type: "object", default: {} },
    { default: "untyped" },
    ["default"],
    null,
  ])("Mcp: are left alone where the field is %j", (field) => {
    expect(withDefaults({}, schema({ field }))).toEqual({});
    expect(withDefaults(undefined, schema({ field }))).toBeUndefined();
  });

  it("Mcp: never reach a prototype, and come from the question's own members alone", () => {
    const hostile = JSON.parse(
      '{"__proto__": {"type": "string", "default": "x"}, "constructor": {"type": "string", "default": "y"}}',
    );
    const filled = withDefaults({}, schema(hostile));
    expect(Object.keys(filled ?? {})).toEqual(["constructor"]);
    const inherited = Object.create({ default: "x" }, { type: { value: "string", enumerable: true } });
    expect(withDefaults({}, schema({ inherited }))).toEqual({});
  });

  it("Mcp: change nothing that was answered, whatever the question", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (content, properties) => {
        const before = JSON.stringify(content);
        expect(withDefaults(content, schema(properties))).toMatchObject(content);
        expect(JSON.stringify(content)).toBe(before);
      }),
    );
  });
});

describe("cleanForm", () => {
  it("Mcp: cleans what people read of a form, and leaves names and values alone", () => {
    const bad = "a\u202Eb";
    const field = { title: bad, description: bad, enum: [bad], enumNames: [bad], default: bad, const: bad };
    const clean = { ...field, title: "ab", description: "ab", enumNames: ["ab"] };
    const choice = (title: string) => ({
      oneOf: [{ const: bad, title }],
      items: { anyOf: [{ const: bad, title }] },
    });
    expect(
      cleanForm({
        type: "object",
        title: bad,
        properties: { title: field, default: field, [bad]: choice(bad) },
        required: [bad],
      }),
    ).toEqual({
      type: "object",
      title: "ab",
      properties: { title: clean, default: clean, [bad]: choice("ab") },
      required: [bad],
    });
  });

  it("X-2 a form cannot reach a prototype", () => {
    const schema = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"title":"x"}},"__proto__":{"title":"y"}}',
    );
    const cleaned = cleanForm(schema);
    expect(JSON.stringify(cleaned)).toBe(JSON.stringify(schema));
    expect(Object.getPrototypeOf(cleaned)).toBe(Object.prototype);
  });
});

describe("isWebAddress", () => {
  it.each([
    "https://example.org/pay?id=1#top",
    "https://bücher.example/",
    "https://example.org/a@b",
    "http://localhost:8080/",
    "http://app.localhost/",
    "http://127.0.0.1/x",
    "http://[::1]:3000/",
  ])("Mcp: takes %s", (url) => expect(isShowableAddress(url)).toBe(true));

  it.each([
    "",
    "example.org",
    "http://example.org/",
    "http://localhost.example.org/",
    "http://127.0.0.1.example.org/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://bank.example@evil.example/",
    "https://user:secret@example.org/",
    "https://@evil.example/",
    "https://:@evil.example/",
    "https://example.org/\u202Egpj.exe",
    "https://exam\u200Bple.org/",
    "https://exam\nple.org/",
    "https://example.org/a\tb",
    " https://example.org/",
    "https:\\\\example.org\\@evil.example",
    "https://example.org/\u0000",
    "https://example.org/\u{E0041}",
  ])("Mcp: refuses %j", (url) => expect(isShowableAddress(url)).toBe(false));

  it("Mcp: takes linear time for a long address", () => {
    const startedAt = cpuMs();
    for (const piece of ["a.", "/", "@", "x"]) isShowableAddress(`http://${piece.repeat(500_000)}`);
    expect(cpuMs() - startedAt).toBeLessThan(2_000);
  });
});
