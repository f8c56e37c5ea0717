import { isPlainObject, setOwn } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { schemaOf } from "../../gateway/schema-of.ts";
import { SchemaParts, saysSecret } from "./schema-parts.ts";

/** What stands in place of a value nobody is to see. */
const HIDDEN = "•••";

const MOST_LEVELS = 64;

/** What is known of the inputs of an operation: nothing in them is to be hidden, all of it is, or what a schema says. */
type Plan = "show" | "hide" | JsonSchemaObject;

const plans = new WeakMap<AnyOperation, Plan>();

/**
 * Gives an input to be remembered: members that their schema calls `writeOnly`, or of the format `password`, are replaced. So is all
 * that a schema may say this of, where one of several does, or where it says more than can be followed here. The input itself stays as
 * it is.
 */
export function hidePasswords(operation: AnyOperation, input: unknown): unknown {
  let plan = plans.get(operation);
  if (plan === undefined) {
    plan = planOf(operation);
    plans.set(operation, plan);
  }
  if (plan === "show") return input;
  if (plan === "hide") return HIDDEN;
  const schemas = new SchemaParts(plan);
  return hide(input, schemas.of([plan]), { schemas, level: 0 });
}

function planOf(operation: AnyOperation): Plan {
  try {
    const { inputSchema } = operation;
    if (inputSchema === undefined || typeof inputSchema === "boolean") return "show";
    // Calls of an operation whose schema is refused are refused too, and their inputs are remembered all the same.
    const schema = schemaOf(operation, "input") ?? inputSchema;
    if (!isPlainObject(schema)) return "hide";
    return saysSecret(schema) ? schema : "show";
  } catch {
    return "hide";
  }
}

interface Place {
  readonly schemas: SchemaParts;
  readonly level: number;
}

function hide(
  value: unknown,
  parts: readonly JsonSchemaObject[] | undefined,
  { schemas, level }: Place,
): unknown {
  if (parts === undefined || level > MOST_LEVELS) return HIDDEN;
  if (parts.length === 0 || typeof value !== "object" || value === null) return value;
  const place = { schemas, level: level + 1 };
  if (Array.isArray(value)) return value.map((item, at) => hide(item, schemas.ofItem(parts, at), place));
  // Whatever else it is, nobody knows which members of it are written.
  if (!isPlainObject(value) || typeof value["toJSON"] === "function") return HIDDEN;
  const shown: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    setOwn(shown, key, hide(member, schemas.ofMember(parts, key), place));
  }
  return shown;
}
