import fc from "fast-check";
import { expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import { findInexactNumbers } from "./response-body.ts";

const found = (text: string) =>
  findInexactNumbers(text).map(({ pointer, found: digits }) => [pointer, digits]);

it("RE-26 names each number that is not kept, and where it is", () => {
  const text = `{"id": 9007199254740993, "a/b": [1, {"~\\u0041\\"": -12345678901234567890}], "s": "9007199254740993",
    "ok": [9007199254740992, 100000000000000000000, 0.12345678901234567890], "far": 1e400}`;
  expect(found(text)).toEqual([
    ["/id", "9007199254740993"],
    ['/a~1b/1/~0A"', "-12345678901234567890"],
    ["/far", "1e400"],
  ]);
  expect(findInexactNumbers("9007199254740993")).toEqual([
    { pointer: "", expected: "a number that can be kept exactly", found: "9007199254740993" },
  ]);
});

it("RE-26 finds what JSON.parse changed, and nothing else", () => {
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ maxDepth: 4 }, tie("number"), fc.string(), tie("list"), tie("object")),
    number: fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
    list: fc.array(tie("any"), { maxLength: 4 }),
    object: fc.dictionary(fc.string(), tie("any"), { maxKeys: 4 }),
  })).any;
  fc.assert(
    fc.property(value, (given) => {
      const text = write(given);
      const changed = listNumbers(given).filter((number) => BigInt(Number(number)) !== number);
      expect(found(text).map(([, digits]) => digits)).toEqual(changed.slice(0, 20).map(String));
    }),
  );
});

it("RE-26 lists twenty, and is done with hostile text in linear time", () => {
  const list = (count: number) => `[${Array.from({ length: count }, () => "9007199254740993").join(",")}]`;
  expect(findInexactNumbers(list(20))).toHaveLength(20);
  expect(findInexactNumbers(list(21))).toHaveLength(20);
  const startedAt = cpuMs();
  findInexactNumbers(`["${'\\"'.repeat(2_000_000)}", 1234567890123456789]`);
  findInexactNumbers(`[${"9".repeat(4_000_000)}]`);
  expect(cpuMs() - startedAt).toBeLessThan(10_000);
});

function write(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${write(member)}`)
    .join(",")}}`;
}

function listNumbers(value: unknown): bigint[] {
  if (typeof value === "bigint") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(listNumbers) : [];
}
