import { blockCase, validBlock } from "./envelope-mutations.ts";
import { nested, randomJson } from "./envelope-spoilers.ts";
import type { Random } from "./random.ts";

/** A tool result to judge, as JSON text so that each language reads its own, and how to read it. */
export interface ResultCase {
  readonly kind: "result";
  readonly json: string;
  readonly lenient: boolean;
  readonly maxBytes?: number;
}

type Fields = Record<string, unknown>;

const META = {
  status: { status: "ok", summary: "done", details: ["d"], truncated: false, tokenUsage: { total: 2 } },
  local: { source: "local", operationId: "o.p", timestamp: 1 },
  http: { source: "http", statusCode: 200, headers: { a: "b" }, contentType: "text/plain", setCookie: ["c"] },
  mcp: {
    source: "mcp",
    isError: false,
    content: [{ type: "text", text: "x", annotations: { priority: 1 } }],
  },
} as const;

const TIERED = {
  tier: "pro",
  tool_version: "1",
  tool_id: "t",
  request_id: "r",
  capabilities: ["c"],
  duration_ms: 1,
  error: null,
  upgrade_hints: [{ feature: "f", tier: "pro", reason: "r" }],
} as const;

const ODD_VALUES = [
  null,
  true,
  false,
  0,
  1,
  -1,
  0.5,
  "",
  "x",
  "error",
  "community",
  [],
  ["x"],
  [1],
  {},
] as const;
const FORMATS = [
  "tool-envelope",
  "tiered-envelope",
  "status-envelope",
  "response-envelope",
  "mcp",
  "ambiguous",
];

/** Makes a tool result of any format, several at once, or nearly one. */
export function resultCase(random: Random): ResultCase {
  const data = JSON.parse(randomJson(random, 2).replaceAll(/-?1e400|9{320}|10{4400}/g, "7"));
  const result = random.chance(0.05) ? contract(random, data) : carrier(random, data);
  if (random.chance(0.15)) result["_meta"] = hint(random);
  if (random.chance(0.03)) spoil(random, result);
  const whole = random.chance(0.02) ? random.pick<unknown>([null, 1, "x", [], [result]]) : result;
  const json = JSON.stringify(whole);
  return {
    kind: "result",
    json,
    lenient: random.chance(0.3),
    ...(random.chance(0.1) && { maxBytes: random.below(600) }),
  };
}

function carrier(random: Random, data: unknown): Fields {
  const result: Fields = {};
  const content = [firstBlock(random, data)];
  while (random.chance(0.45)) content.push(laterBlock(random, data));
  if (random.chance(0.95)) result["content"] = random.chance(0.03) ? [] : content;
  if (random.chance(0.4)) result["structuredContent"] = structured(random, data);
  if (random.chance(0.2)) result["isError"] = random.pick<unknown>([true, true, false, 1, "true", null]);
  return result;
}

function structured(random: Random, data: unknown): unknown {
  if (random.chance(0.3)) return data;
  return random.chance(0.2) ? random.pick(ODD_VALUES) : contract(random, data);
}

function firstBlock(random: Random, data: unknown): unknown {
  if (random.chance(0.4)) return textBlock(contractText(random, data));
  if (random.chance(0.1)) return textBlock(validBlock(JSON.stringify(data)));
  return random.chance(0.1) ? oddBlock(random) : textBlock("## Done");
}

function laterBlock(random: Random, data: unknown): unknown {
  if (random.chance(0.15)) return oddBlock(random);
  if (random.chance(0.15)) return textBlock("More text.");
  if (random.chance(0.3)) return textBlock(blockCase(random).text);
  if (random.chance(0.2)) {
    return textBlock(validBlock('{"category":"weather","code":"E","message":"m","recoverable":true}'));
  }
  return textBlock(validBlock(random.chance(0.8) ? JSON.stringify(data) : randomJson(random, 2)));
}

function textBlock(text: string): Fields {
  return { type: "text", text };
}

function oddBlock(random: Random): unknown {
  const text = validBlock("1");
  return random.pick<unknown>([
    null,
    text,
    [],
    { text },
    { type: "text" },
    { type: "text", text: [text] },
    { type: "resource", text, resource: { uri: "u", text } },
    { type: "Text", text },
  ]);
}

function contractText(random: Random, data: unknown): string {
  const json = JSON.stringify(contract(random, data));
  if (random.chance(0.1))
    return random.pick([` ${json}`, `${json} `, `${json},`, json.slice(0, -1), `\uFEFF${json}`]);
  if (random.chance(0.1))
    return json.replace(/\}$/, `,"x":${nested(random, random.pick([510, 511, 512, 513]))}}`);
  if (random.chance(0.1))
    return json.replace(/\}$/, `,"data":${random.pick(['"\uD83D\\uDE00"', "1e400", "-0"])}}`);
  return random.chance(0.1) ? json.replace(/:1\b/, ":1e400") : json;
}

/** One contract, now and then two or three in one, now and then spoiled. */
function contract(random: Random, data: unknown): Fields {
  const kind = random.below(10);
  const value: Fields = { data };
  if (kind < 4) Object.assign(value, structuredClone(TIERED));
  if (kind < 1 || kind > 3) {
    const names = random.chance(0.1)
      ? (["status", "local"] as const)
      : [random.pick(Object.keys(META) as Name[])];
    value["meta"] = Object.assign({}, ...names.map((name) => structuredClone(META[name])));
  }
  if (kind < 4 && random.chance(0.2)) value["error"] = { error: "no", error_code: "E", error_details: {} };
  if (random.chance(0.05)) Object.assign(value["meta"] ?? {}, { isError: true });
  if (random.chance(0.4)) spoil(random, value);
  return value;
}

type Name = keyof typeof META;

/** Drops or replaces one field, somewhere inside. */
function spoil(random: Random, value: Fields): void {
  const keys = Object.keys(value);
  if (keys.length === 0) return;
  const key = random.pick(keys);
  const member = value[key];
  const isParent = typeof member === "object" && member !== null;
  if (isParent && key !== "data" && random.chance(0.7)) spoil(random, member as Fields);
  else if (random.chance(0.3) && !Array.isArray(value)) delete value[key];
  else value[key] = random.pick(ODD_VALUES);
}

function hint(random: Random): unknown {
  const format = random.chance(0.9) ? random.pick(FORMATS) : random.pick(ODD_VALUES);
  const residual = random.chance(0.9) ? { format } : random.pick(ODD_VALUES);
  return random.chance(0.9) ? { "dev.waybill/result": { residual } } : { residual };
}
