import { expect, test } from "vitest";
import { InputHistory, type TextStore } from "./input-history.ts";

class Store implements TextStore {
  text: string | null = null;
  most: number;
  constructor(most = Number.POSITIVE_INFINITY) {
    this.most = most;
  }
  getItem(): string | null {
    return this.text;
  }
  setItem(_key: string, text: string): void {
    if (text.length > this.most) throw new DOMException("full", "QuotaExceededError");
    this.text = text;
  }
}

const texts = (history: InputHistory, operation: string): readonly string[] =>
  history.inputs(operation).map(({ text }) => text);

test("inputs come back, the last one first, each once", () => {
  const history = new InputHistory(new Store(), "gateway");
  for (const n of [1, 2, 1]) history.add("a.b", { n });
  expect(texts(history, "a.b")).toEqual(['{"n":1}', '{"n":2}']);
  expect(history.inputs("a.c")).toEqual([]);
});

test("callers and gateways do not see the inputs of each other", () => {
  const store = new Store();
  new InputHistory(store, "ada").add("a.b", 1);
  expect(new InputHistory(store, "bob").inputs("a.b")).toEqual([]);
});

test("the last 20 of an operation and the last 500 of all stay", () => {
  const history = new InputHistory(new Store(), "");
  for (let n = 0; n < 30; n += 1) history.add("a.b", n);
  expect(texts(history, "a.b")).toHaveLength(20);
  expect(texts(history, "a.b")[0]).toBe("29");
  for (let n = 0; n < 500; n += 1) history.add(`many.${n}`, n);
  expect(history.inputs("a.b")).toEqual([]);
  expect(history.inputs("many.0")).toHaveLength(1);
});

test("the whole stays below a megabyte, and what is longer than is kept is not kept", () => {
  const store = new Store();
  const history = new InputHistory(store, "");
  for (let n = 0; n < 40; n += 1) history.add(`a.${n}`, { n, text: "x".repeat(40_000) });
  expect(store.text?.length).toBeLessThanOrEqual(500_000);
  expect(history.inputs("a.39")).toHaveLength(1);
  history.add("long", "x".repeat(100_000));
  expect(history.inputs("long")).toEqual([]);
});

test("secrets are left out", () => {
  const store = new Store();
  const history = new InputHistory(store, "");
  const schema = { properties: { pin: { type: "string", writeOnly: true } } };
  history.add("a.b", { pin: "1234", user: "ada" }, schema);
  expect(store.text).not.toContain("1234");
  expect(history.inputs("a.b")[0]).toMatchObject({ text: '{"user":"ada"}', isPartial: true });
  history.add("a.c", "1234", { writeOnly: true });
  expect(store.text).not.toContain("1234");
});

test("the inputs of an operation are forgotten, those of others stay", () => {
  const store = new Store();
  const history = new InputHistory(store, "");
  for (const n of [1, 2, 3]) history.add("a.b", n);
  history.add("a.c", 4);
  history.forget("a.b");
  expect(texts(history, "a.b")).toEqual([]);
  expect(texts(history, "a.c")).toEqual(["4"]);
});

test("a store that is full gets less, and one that refuses does no harm", () => {
  const history = new InputHistory(new Store(300), "");
  for (let n = 0; n < 50; n += 1) history.add(`a.${n}`, "x".repeat(40));
  expect(history.inputs("a.49")).toHaveLength(1);
  const refused = new InputHistory(new Store(0), "");
  refused.add("a.b", 1);
  expect(refused.inputs("a.b")).toEqual([]);
  new InputHistory(undefined, "").add("a.b", 1);
});

test("what others wrote into the store is passed over", () => {
  const store = new Store();
  const odd = ["not json", "null", "{}", '[1,null,[],{"of":1},{"of":"x","at":"1","text":"2"}]'];
  for (const text of odd) {
    store.text = text;
    const history = new InputHistory(store, "");
    expect(history.inputs("a.b").length).toBeLessThanOrEqual(1);
    history.add("a.c", 1);
    expect(history.inputs("a.c")).toHaveLength(1);
  }
});
