import { isPlainObject } from "../../core/json/json-value.ts";
import { type Era, META_KEYS, methodTraits } from "../protocol/revisions.ts";

/** A result with one member whose JSON is at hand: thousands of tools need not be turned into text again for everybody who asks. */
export class JsonList {
  readonly member: string;
  readonly json: string;
  /** The other members. */
  readonly rest: object;

  constructor(member: string, json: string, rest: object) {
    this.member = member;
    this.json = json;
    this.rest = rest;
  }
}

/** A whole result whose JSON is at hand; since 2026-07-28 it still lacks what `complete` adds. */
export class JsonResult {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }
}

/** What a result is written with. */
export interface WriteAnswerOptions {
  readonly method: string;
  readonly era: Era;
  readonly serverInfo: object;
}

/** What `complete` adds to a `JsonResult`, by the server it is said of. */
const ends = new WeakMap<object, string>();

function endOf(serverInfo: object): string {
  const known = ends.get(serverInfo);
  if (known !== undefined) return known;
  const meta = JSON.stringify({ [META_KEYS.serverInfo]: serverInfo });
  const end = `,"resultType":"complete","_meta":${meta}}`;
  ends.set(serverInfo, end);
  return end;
}

/** Writes a result as JSON, as the revision in use wants it. */
export function writeAnswer(result: unknown, { method, era, serverInfo }: WriteAnswerOptions): string {
  if (result instanceof JsonResult) {
    return era === "modern" ? result.json.slice(0, -1) + endOf(serverInfo) : result.json;
  }
  const isList = result instanceof JsonList;
  const value = (isList ? result.rest : result) as Readonly<Record<string, unknown>>;
  const text = JSON.stringify(era === "modern" ? complete(value, method, serverInfo) : value);
  if (!isList) return text;
  const head = `{${JSON.stringify(result.member)}:${result.json}`;
  return text === "{}" ? `${head}}` : `${head},${text.slice(1)}`;
}

/** Since 2026-07-28 a result says whether it is one, whose it is, and how long it may be kept. */
function complete(result: Readonly<Record<string, unknown>>, method: string, serverInfo: object): object {
  const { resultType = "complete", _meta: meta = {} } = result;
  const isCacheable = resultType === "complete" && methodTraits(method)?.isCacheable === true;
  return {
    ...(isCacheable && { ttlMs: 0, cacheScope: "private" }),
    ...result,
    resultType,
    _meta: isPlainObject(meta) ? { [META_KEYS.serverInfo]: serverInfo, ...meta } : meta,
  };
}
