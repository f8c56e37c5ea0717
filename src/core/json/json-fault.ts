import type { JsonTextError } from "./json-value.ts";

/** The position of the character at which a text stops being JSON; its length where it ends too early, or not at all. */
export function findJsonFault(text: string): number {
  const open: Opening[] = [];
  let expected: Expected = "value";
  for (let at = skipSpace(text, 0); ; ) {
    if (at >= text.length || (expected === "rest" && open.length === 0)) return at;
    const token = readToken(text, at);
    if (token === undefined) return at;
    if (token.fault !== undefined) return token.fault;
    const next = advance(expected, open, token.kind);
    if (next === undefined) return at;
    expected = next;
    at = skipSpace(text, token.end);
  }
}

type Opening = "[" | "{";
type Expected = "value" | "value or ]" | "key" | "key or }" | ":" | "rest";
type Kind = Opening | "]" | "}" | "," | ":" | "string" | "scalar";

interface Token {
  readonly kind: Kind;
  readonly end: number;
  /** Where a string goes wrong. */
  readonly fault?: number | undefined;
}

const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const QUOTE = 34;
const BACKSLASH = 92;
const SPACE = 32;

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && " \t\n\r".includes(text[at] as string)) at += 1;
  return at;
}

function readToken(text: string, at: number): Token | undefined {
  const sign = text[at] as string;
  if ("[]{},:".includes(sign)) return { kind: sign as Kind, end: at + 1 };
  if (sign === '"') return readString(text, at);
  SCALAR.lastIndex = at;
  return SCALAR.test(text) ? { kind: "scalar", end: SCALAR.lastIndex } : undefined;
}

/** A loop of its own: a pattern would keep a way back for every character. */
function readString(text: string, from: number): Token {
  let at = from + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return { kind: "string", end: at + 1 };
    if (code < SPACE) return { kind: "string", end: at, fault: at };
    if (code === BACKSLASH) {
      ESCAPE.lastIndex = at;
      if (!ESCAPE.test(text)) return { kind: "string", end: at, fault: at };
      at = ESCAPE.lastIndex;
    } else at += 1;
  }
  return { kind: "string", end: at, fault: at };
}

/** What may follow a token; nothing where it may not stand here. */
function advance(expected: Expected, open: Opening[], kind: Kind): Expected | undefined {
  switch (expected) {
    case "key or }":
    case "key":
      if (kind === "string") return ":";
      return expected === "key or }" && kind === "}" ? closed(open) : undefined;
    case ":":
      return kind === ":" ? "value" : undefined;
    case "rest": {
      const isObject = open.at(-1) === "{";
      if (kind === ",") return isObject ? "key" : "value";
      return kind === (isObject ? "}" : "]") ? closed(open) : undefined;
    }
    case "value or ]":
    case "value":
      if (kind === "string" || kind === "scalar") return "rest";
      if (kind === "]" && expected === "value or ]") return closed(open);
      if (kind !== "[" && kind !== "{") return undefined;
      open.push(kind);
      return kind === "[" ? "value or ]" : "key or }";
  }
}

function closed(open: Opening[]): Expected {
  open.pop();
  return "rest";
}

/** Says where a text stops being JSON, and what stands there, as the end of a sentence. */
export function describeJsonFault(text: string, error: JsonTextError): string {
  if (error.isWellFormed) return error.message;
  if (text.trim() === "") return "it is empty.";
  const at = findJsonFault(text);
  if (at >= text.length) return "it ends too early.";
  const before = text.slice(0, at).split("\n");
  const shown = JSON.stringify(text.slice(at, at + 12));
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1} has ${shown}, which cannot stand there.`;
}
