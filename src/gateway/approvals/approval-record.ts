import { createHash, randomBytes } from "node:crypto";
import type { Identity } from "../../core/access/identity.ts";
import {
  canonicalJson,
  isPlainJson,
  isPlainObject,
  type JsonValue,
  parseJsonTextOrNone,
} from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { escapeHidden, safeLine, safeText } from "../../core/text/clean-text.ts";
import { hidePasswords } from "../hide-passwords.ts";
import { operationJson } from "../operation-json.ts";
import { callerKey, recognisedBy } from "../serve/gateway-auth.ts";
import type { StateName } from "../state/state-store.ts";
import type { ApprovalPlace } from "./approve-policy.ts";

/** Bounds of what is kept of one call that waits. */
export const ASKED_LIMITS = {
  /** Characters of its input, written as JSON: what cannot be shown whole is not approved. */
  input: 65_536,
  /** Characters of what the operation says of itself. */
  words: 4_000,
  /** Characters of the comment on a decision. */
  comment: 500,
} as const;

/** A person, as they were recognised. */
export interface ApprovalPerson {
  /** Nothing for an anonymous caller. */
  readonly subject?: string | undefined;
  readonly issuer?: string | undefined;
  readonly recognised?: string | undefined;
}

/** What somebody decided about a call. */
export interface ApprovalDecision {
  readonly by: ApprovalPerson;
  readonly via: ApprovalPlace;
  /** Unix epoch milliseconds. */
  readonly at: number;
  readonly comment?: string | undefined;
}

/** A call that waits for a person, or that one has decided about, as it is kept. */
export interface ApprovalRecord {
  readonly id: string;
  readonly state: "waiting" | "approved" | "denied";
  readonly caller: ApprovalPerson;
  /** What tells the caller from all others, as a digest. */
  readonly callerKey: string;
  readonly operation: string;
  /** The name of the source. */
  readonly source?: string | undefined;
  /** The hash of what the operation is. */
  readonly definition: string;
  /** What the operation says of itself: its words, and not ours. */
  readonly title?: string | undefined;
  readonly description: string;
  readonly destructive?: boolean | undefined;
  /** The input as JSON, with what is secret in it hidden and hidden characters escaped. */
  readonly input: string;
  /** The SHA-256 of the whole input. */
  readonly inputDigest: string;
  /** Unix epoch milliseconds. */
  readonly askedAt: number;
  readonly expiresAt: number;
  /** The SHA-256 of the one-time address by which a webhook answers. */
  readonly ticket?: string | undefined;
  readonly decision?: ApprovalDecision | undefined;
}

/** What a request for approval is bound to: another caller, operation, definition or input is another request. */
export interface ApprovalBinding {
  readonly name: StateName;
  readonly callerKey: string;
  readonly definition: string;
  readonly inputDigest: string;
}

/** Where requests for approval are kept. */
export const APPROVALS = "approvals";

const OWNER_DIGITS = 32;
const KEY_DIGITS = 64;
const NONCE_DIGITS = 12;
const ID = /^[0-9a-f]{108}$/;

/** The SHA-256 of a text, in hexadecimal. */
export function digestHex(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** Binds a call to who makes it, to what the operation is now, and to its whole input. */
export function bindApproval(
  operation: AnyOperation,
  source: string | undefined,
  { caller, text }: { readonly caller: Identity | undefined; readonly text: string },
): ApprovalBinding {
  const key = callerDigestOf(caller);
  const definition = definitionHash(operation, source);
  const inputDigest = digestHex(text);
  const bound = digestHex(JSON.stringify([key, operation.id, definition, inputDigest]));
  const name = { collection: APPROVALS, owner: key.slice(0, OWNER_DIGITS), key: bound };
  return { name, callerKey: key, definition, inputDigest };
}

/** What tells a caller from all others, as a digest; all anonymous callers are one. */
export function callerDigestOf(identity: Identity | undefined): string {
  return digestHex(JSON.stringify(["caller", callerKey(identity) ?? null]));
}

const HASHES = new WeakMap<AnyOperation, { readonly source: string | undefined; readonly hash: string }>();

/** Hashes what an operation is: what it says of itself, its schemas, and who may call it. */
export function definitionHash(operation: AnyOperation, source: string | undefined): string {
  const known = HASHES.get(operation);
  if (known !== undefined && known.source === source) return known.hash;
  // Written and read, so that what is no JSON, such as `undefined`, is left out of it.
  const json: JsonValue = JSON.parse(JSON.stringify(operationJson(operation, source)));
  const hash = digestHex(canonicalJson(json));
  HASHES.set(operation, { source, hash });
  return hash;
}

/** Names a new request: a digest of what it is bound to, so that it can be found, and what nobody can guess. */
export function createApprovalId({ owner, key }: StateName): string {
  return randomBytes(NONCE_DIGITS / 2).toString("hex") + owner + key;
}

/** Where a request is kept; nothing for what is no id. */
export function nameOfApproval(id: string): StateName | undefined {
  if (!ID.test(id)) return undefined;
  const owner = id.slice(NONCE_DIGITS, NONCE_DIGITS + OWNER_DIGITS);
  return { collection: APPROVALS, owner, key: id.slice(-KEY_DIGITS) };
}

/** How a person is told of, without anything that signs them in. */
export function personOf(identity: Identity | undefined): ApprovalPerson {
  if (identity === undefined) return {};
  const issuer = identity.claims?.["iss"];
  const recognised = recognisedBy(identity);
  return {
    subject: safeLine(identity.subject, 200),
    ...(typeof issuer === "string" && { issuer: safeLine(issuer, 200) }),
    ...(recognised !== undefined && { recognised }),
  };
}

/** The whole input as text that is the same for the same input; nothing for what is no JSON. */
export function inputTextOf(input: unknown): string | undefined {
  if (input === undefined) return "";
  return isPlainJson(input) ? canonicalJson(input as JsonValue) : undefined;
}

/** The input as people are shown it, with what its schema calls secret and what `mask` knows hidden; nothing where it cannot be shown whole. */
export function shownInput(
  operation: AnyOperation,
  input: unknown,
  mask: (text: string) => string,
): string | undefined {
  if (input === undefined) return "";
  let isWhole = true;
  const open = hidePasswords(operation, input, () => {
    isWhole = false;
  });
  const text = isWhole ? escapeHidden(maskTexts(JSON.stringify(open, undefined, 2), mask)) : undefined;
  return text === undefined || text.length > ASKED_LIMITS.input ? undefined : text;
}

/** Secrets are looked for as they are, and not as JSON writes them. */
function maskTexts(json: string, mask: (text: string) => string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"/g, (text) => JSON.stringify(mask(JSON.parse(text))));
}

/** What an operation says of itself, cleaned and bounded. */
export function wordsOf({ title, description, annotations }: AnyOperation) {
  return {
    ...(title !== undefined && { title: safeLine(title, 200) }),
    description: safeText(description.slice(0, ASKED_LIMITS.words)),
    ...(annotations?.destructive !== undefined && { destructive: annotations.destructive }),
  };
}

/** Writes a record down. */
export function encodeApproval(record: ApprovalRecord): Uint8Array {
  return Buffer.from(JSON.stringify(record), "utf8");
}

/** Reads a record; nothing for what is none, as another version may have written it. */
export function decodeApproval(bytes: Uint8Array): ApprovalRecord | undefined {
  const value = parseJsonTextOrNone(Buffer.from(bytes).toString("utf8"));
  if (!isPlainObject(value)) return undefined;
  const { id, state, operation, inputDigest, expiresAt } = value;
  const isRight =
    typeof id === "string" &&
    ID.test(id) &&
    (state === "waiting" || state === "approved" || state === "denied") &&
    typeof operation === "string" &&
    typeof inputDigest === "string" &&
    typeof expiresAt === "number";
  return isRight ? (value as unknown as ApprovalRecord) : undefined;
}
