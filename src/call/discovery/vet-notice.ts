import type { AccessRule } from "../../core/access/access.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { type EntrySettings, OperationEntry } from "../../core/registry/operation-entry.ts";
import { type AnySchema, type SchemaDirection, toOperationSchema } from "../../core/schema/any-schema.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import type { Steps } from "./offer-reader.ts";
import type { OperationNotice } from "./service-notice.ts";

/** An operation made from a notice, and who may call it. */
export interface NoticedOperation {
  readonly operation: AnyOperation;
  readonly access: AccessRule | undefined;
}

/** Compiled only to be vetted: most of what is out there is never called from here. */
const VETTING = { codegen: false };

/**
 * Makes the operation a notice describes, one schema a step; throws a `TypeError` for what could not be registered here
 * either.
 */
export function* vetNotice(
  notice: OperationNotice,
  handler: AnyOperation["handler"],
): Steps<NoticedOperation> {
  const { title, description } = notice;
  const operation = defineOperation({
    ...notice,
    ...(title !== undefined && { title: cleanText(title).text }),
    description: cleanText(description).text,
    source: "call",
    handler,
  });
  // A key of its own, so that nothing compiled outlives the vetting.
  const options = { ...VETTING };
  const settings: EntrySettings = {
    outputPolicy: "off",
    compile: (schema, direction) => toOperationSchema(schema, direction, options),
    warn: () => {},
  };
  for (const [schema, direction] of schemasOf(notice)) {
    if (!isAccepted(schema, direction, settings)) break;
    yield;
  }
  // It finds compiled what was compiled above, and says what is wrong with the one that was not.
  const { access } = new OperationEntry(operation, settings);
  return { operation, access };
}

/** In the order an entry looks at them. */
function* schemasOf({ inputSchema, outputSchema, errors = [] }: OperationNotice) {
  yield [inputSchema, "input"] as const;
  yield [outputSchema, "output"] as const;
  for (const { schema } of errors) yield [schema, "output"] as const;
}

function isAccepted(
  schema: AnySchema | undefined,
  direction: SchemaDirection,
  { compile }: EntrySettings,
): boolean {
  try {
    if (schema !== undefined) compile(schema, direction);
    return true;
  } catch {
    return false;
  }
}
