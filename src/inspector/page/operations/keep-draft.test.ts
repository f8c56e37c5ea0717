import { expect, test } from "vitest";
import type { OperationView } from "../../protocol.ts";
import { InputHistory, type TextStore } from "./input-history.ts";
import { keepDraft } from "./workspace.ts";

const MOST = 65_536;

function openDrafts(): { readonly drafts: InputHistory; readonly text: () => string } {
  const kept = new Map<string, string>();
  const store: TextStore = {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, text) => void kept.set(key, text),
  };
  return { drafts: new InputHistory(store, "ada"), text: () => [...kept.values()].join() };
}

const OPERATION: OperationView = {
  id: "post.send",
  namespace: "post",
  name: "send",
  version: "1.0.0",
  type: "mutation",
  description: "",
  inputSchema: {
    type: "object",
    properties: {
      to: { type: "string" },
      count: { type: "number", default: 1 },
      door: { type: "string", writeOnly: true },
      safe: { type: "object", properties: { code: { type: "string", format: "password" } } },
    },
    required: ["to"],
  },
};

const desk = (value: unknown, operation = OPERATION) => ({ operation, value });

test("what was typed last is kept, each operation for itself", () => {
  const { drafts } = openDrafts();
  const other = { ...OPERATION, id: "post.track" };
  keepDraft(drafts, desk({ to: "A" }));
  keepDraft(drafts, desk({ to: "other" }, other));
  keepDraft(drafts, desk({ to: "Ada", ["__proto__"]: 1 }));
  expect(drafts.inputs("post.send")).toHaveLength(1);
  expect(drafts.last("post.send")).toEqual({
    value: JSON.parse('{"to":"Ada","__proto__":1}'),
    isPartial: false,
  });
  expect(drafts.last("post.track")).toMatchObject({ value: { to: "other" } });
});

test("what the schema calls a password is not kept, at any depth, and that it is missing is known", () => {
  const { drafts, text } = openDrafts();
  keepDraft(drafts, desk({ to: "Ada", door: "secret-1", safe: { code: "secret-2" } }));
  expect(drafts.last("post.send")).toEqual({ value: { to: "Ada", safe: {} }, isPartial: true });
  expect(text()).not.toContain("secret-");
});

test("a form as it is at first is not kept, and takes away what was", () => {
  const { drafts } = openDrafts();
  keepDraft(drafts, desk({ to: "Ada", count: 2 }));
  keepDraft(drafts, desk({ count: 1 }));
  expect(drafts.last("post.send")).toBeUndefined();
});

test("an input that is too long is not kept, and takes away what was", () => {
  const { drafts } = openDrafts();
  const longest = { to: "x".repeat(MOST - JSON.stringify({ to: "" }).length) };
  keepDraft(drafts, desk(longest));
  expect(drafts.last("post.send")).toEqual({ value: longest, isPartial: false });
  keepDraft(drafts, desk({ to: `${longest.to}x` }));
  expect(drafts.last("post.send")).toBeUndefined();
});

test("what others wrote is passed over", () => {
  const kept = { of: JSON.stringify(["ada", "post.send"]), at: 1, text: "{ no JSON" };
  const store: TextStore = { getItem: () => JSON.stringify([kept]), setItem: () => undefined };
  expect(new InputHistory(store, "ada").last("post.send")).toBeUndefined();
});
