import { joinPointer } from "../../core/json/json-pointer.ts";
import { parseJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { textOf } from "../../core/result/call-tool-result.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Oddity } from "../codec.ts";

/** Finds a text block that is JSON and says something else than the structured content: models read one, programs the other. */
export function findContradiction(value: unknown): Oddity | undefined {
  const parts = partsOf(value);
  if (parts === undefined) return undefined;
  const { content, structured } = parts;
  let odd: Oddity | undefined;
  for (const [at, block] of content.entries()) {
    const text = textOf(block);
    const said = text === undefined ? undefined : parseJsonTextOrNone(text);
    if (said === undefined || !isComparable(said, structured)) continue;
    if (!isMirror(said, structured, at)) odd ??= contradiction(at, differenceFrom(structured, said));
    // An envelope says once what it is; texts besides are for people, and may be the envelope it was made of.
    else if (isEnvelope(structured)) return undefined;
  }
  return odd;
}

function isEnvelope(structured: unknown): boolean {
  return isPlainObject(structured) && Object.hasOwn(structured, "data");
}

interface Parts {
  readonly content: readonly unknown[];
  readonly structured: unknown;
}

/** A tool result, or what an envelope of ours says of one. */
function partsOf(value: unknown): Parts | undefined {
  if (!isPlainObject(value)) return undefined;
  const holder = "structuredContent" in value ? value : value["meta"];
  if (!isPlainObject(holder) || !Object.hasOwn(holder, "structuredContent")) return undefined;
  const { content, structuredContent } = holder;
  if (!Array.isArray(content) || structuredContent === undefined) return undefined;
  return { content, structured: structuredContent };
}

/** A number or a word may be a text for people; only beside data of its own kind is it meant as data. */
function isComparable(said: unknown, structured: unknown): boolean {
  return (typeof said === "object" && said !== null) || typeof said === typeof structured;
}

/** The same, with or without what each is wrapped in, or the item of a list that is told one block for each. */
function isMirror(said: unknown, structured: unknown, at: number): boolean {
  const [sayings, wholes] = [unwrapped(said), unwrapped(structured)];
  const isItem = (whole: unknown): boolean => Array.isArray(whole) && isEqual(said, whole[at]);
  return wholes.some((whole) => isItem(whole) || sayings.some((saying) => isEqual(saying, whole)));
}

function unwrapped(value: unknown): readonly unknown[] {
  return [value, ...wrappedIn(value).map((inner) => inner.value)];
}

interface Wrapped {
  readonly key: string;
  readonly value: unknown;
}

/** Servers wrap what is no object as `result`, and envelopes hold their data as `data`: their texts may be that alone. */
function wrappedIn(structured: unknown): readonly Wrapped[] {
  if (!isPlainObject(structured)) return [];
  const isWrapper = Object.hasOwn(structured, "result") && Object.keys(structured).length === 1;
  return [
    ...(isWrapper ? [{ key: "result", value: structured["result"] }] : []),
    ...(isEnvelope(structured) ? [{ key: "data", value: structured["data"] }] : []),
  ];
}

/** The first pointer into the structured content, or into the text, behind which they differ. */
function differenceFrom(structured: unknown, said: unknown): string {
  const inner = Array.isArray(said)
    ? wrappedIn(structured).find(({ value }) => Array.isArray(value))
    : undefined;
  return inner === undefined
    ? (firstDifference(structured, said) ?? "")
    : `/${inner.key}${firstDifference(inner.value, said) ?? ""}`;
}

function firstDifference(a: unknown, b: unknown): string | undefined {
  if (Array.isArray(a) && Array.isArray(b)) return firstDifferentItem(a, b);
  if (isPlainObject(a) && isPlainObject(b)) return firstDifferentMember(a, b);
  return a === b ? undefined : "";
}

function firstDifferentItem(a: readonly unknown[], b: readonly unknown[]): string | undefined {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const inner = at < Math.min(a.length, b.length) ? firstDifference(a[at], b[at]) : "";
    if (inner !== undefined) return joinPointer("", at) + inner;
  }
  return undefined;
}

type Members = Readonly<Record<string, unknown>>;

function firstDifferentMember(a: Members, b: Members): string | undefined {
  for (const key of Object.keys(a)) {
    const inner = Object.hasOwn(b, key) ? firstDifference(a[key], b[key]) : "";
    if (inner !== undefined) return joinPointer("", key) + inner;
  }
  const more = Object.keys(b).find((key) => !Object.hasOwn(a, key));
  return more === undefined ? undefined : joinPointer("", more);
}

function contradiction(at: number, pointer: string): Oddity {
  const place = pointer === "" ? "as a whole" : `first at ${safeLine(pointer, 200)}`;
  return {
    code: "text_contradicts_data",
    message: `Text block ${at + 1} is JSON that differs from the structured content, ${place}.`,
  };
}
