import type { AccessRule } from "../../core/access/access.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { type EntrySettings, OperationEntry } from "../../core/registry/operation-entry.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
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

/** What became of something that was to be a notice. */
export type CheckedNotice = { readonly usable: true; readonly notice: OperationNotice } | UnusableNotice;

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

/** An operation made from a notice, and who may call it. */
export interface NoticedOperation {
  readonly operation: AnyOperation;
  readonly access: AccessRule | undefined;
}

const MAX_REASON = 500;
/** Compiled only to be vetted: most of what is out there is never called from here. */
const VETTING = { codegen: false };

/** Checks what came from outside all the way, schemas and access rules too; never throws. */
export function fromOperationNotice(value: unknown): CheckedNotice {
  const read = readOperationNotice(value);
  if (!read.usable) return read;
  const { id, notice } = read;
  try {
    toNoticedOperation(notice, () => undefined);
    return { usable: true, notice };
  } catch (thrown) {
    return { usable: false, id, reason: reasonOf(thrown) };
  }
}

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

/** Makes the operation a notice describes; throws a `TypeError` for what could not be registered here either. */
export function toNoticedOperation(
  notice: OperationNotice,
  handler: AnyOperation["handler"],
): NoticedOperation {
  const operation = defineOperation({ ...notice, source: "call", handler });
  // A key of its own, so that nothing compiled outlives the vetting.
  const options = { ...VETTING };
  const settings: EntrySettings = {
    outputPolicy: "off",
    compile: (schema, direction) => toOperationSchema(schema, direction, options),
    warn: () => {},
  };
  const { access } = new OperationEntry(operation, settings);
  return { operation, access };
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
