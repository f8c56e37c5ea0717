import { canonicalText, copyJson } from "./bounded-json.ts";
import {
  FIELD_RULES,
  isJsonObject,
  type JsonObject,
  knownErrorFields,
  NOTICE_LIMITS,
  pick,
  REQUIRED_FIELDS,
} from "./notice-fields.ts";
import { isOperationId } from "./operation-id.ts";
import type { OperationNotice } from "./service-notice.ts";

/** Why a notice cannot be used; its id where it has one. */
export interface UnusableNotice {
  readonly usable: false;
  readonly id: string | undefined;
  readonly reason: string;
}

/** A notice whose fields have been read; nobody has looked at its schemas and rules yet. */
export interface ReadNotice {
  readonly usable: true;
  readonly id: string;
  readonly notice: OperationNotice;
  /** The same for equal notices. */
  readonly text: string;
}

const MAX_REASON = 500;

/** Copies the known fields of what came from outside; never throws. */
export function readOperationNotice(value: unknown): ReadNotice | UnusableNotice {
  let id: string | undefined;
  try {
    const copied = copyJson(value, NOTICE_LIMITS);
    if (!isJsonObject(copied)) throw new TypeError("An operation must be an object.");
    id = idOf(copied);
    const fields = readFields(copied);
    if (id === undefined) throw new TypeError("Its namespace and name do not make an id.");
    return { usable: true, id, notice: fields as unknown as OperationNotice, text: canonicalText(fields) };
  } catch (thrown) {
    return { usable: false, id, reason: reasonOf(thrown) };
  }
}

/** Says in bounded words what was thrown. */
export function reasonOf(thrown: unknown): string {
  const reason = thrown instanceof Error ? thrown.message : "It cannot be read.";
  return reason.length > MAX_REASON ? `${reason.slice(0, MAX_REASON)}…` : reason;
}

function idOf({ namespace, name }: JsonObject): string | undefined {
  if (typeof namespace !== "string" || typeof name !== "string") return undefined;
  const id = `${namespace}.${name}`;
  return isOperationId(id) && !namespace.includes(".") ? id : undefined;
}

function readFields(copied: JsonObject): JsonObject {
  const missing = REQUIRED_FIELDS.find((field) => !Object.hasOwn(copied, field));
  if (missing !== undefined) throw new TypeError(`It has no ${missing}.`);
  const fields: JsonObject = pick(copied, FIELD_RULES.keys());
  for (const [field, value] of Object.entries(fields)) {
    const [wanted, isUsable] = FIELD_RULES.get(field) ?? ["known", () => false];
    if (!isUsable(value)) throw new TypeError(`Its ${field} must be ${wanted}.`);
  }
  const { errors } = fields;
  return errors === undefined ? fields : Object.freeze({ ...fields, errors: knownErrorFields(errors) });
}
