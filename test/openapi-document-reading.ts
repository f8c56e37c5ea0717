import { compileSchema, type JsonSchema } from "../src/index.ts";
import { type ReadApiOptions, readApi } from "../src/openapi/client/document/read-api.ts";
import type { IndexedApi, OperationPlan } from "../src/openapi/client/plan.ts";

/** Reads a document without overlays and with the usual limits. */
export const read = (document: string | URL | object, options: Partial<ReadApiOptions> = {}) =>
  readApi(document, { overlays: [], limits: {}, ...options });

/** The plan of the operation of that name. */
export function planOf(api: IndexedApi, name: string): OperationPlan {
  const found = api.operations.find((operation) => operation.name === name);
  if (found === undefined) throw new Error(`no ${name} in ${api.operations.map((one) => one.name).join()}`);
  return found.plan();
}

/** One GET operation with whatever else a document has. */
export function minimal(operation: object, rest: object = {}): object {
  return {
    openapi: "3.1.0",
    info: { title: "T", version: "1.0.0" },
    paths: { "/x": { get: operation } },
    ...rest,
  };
}

/** An operation that answers with a schema. */
export const answering = (schema: unknown) => ({
  responses: { 200: { description: "", content: { "application/json": { schema } } } },
});

/** The plan of an operation that answers with a schema. */
export async function planMinimal(schema: unknown, rest: object = {}): Promise<OperationPlan> {
  return planOf(await read(minimal(answering(schema), rest)), "get/x");
}

/** What an operation answers with, complete. */
export function answer(plan: OperationPlan): JsonSchema {
  const schema = plan.responses[0]?.content[0]?.schema ?? true;
  return typeof schema === "boolean" ? schema : { ...schema, $defs: plan.definitions };
}

/** Tells whether a value is what an operation answers with. */
export const accepts = (plan: OperationPlan, value: unknown) => compileSchema(answer(plan)).check(value);

/** Compiles every schema of a plan, and says how many there are. */
export function compileAll(plan: OperationPlan): number {
  const schemas = [
    ...plan.parameters.map(({ schema }) => schema),
    ...(plan.body?.content ?? []).map(({ schema }) => schema ?? true),
    ...plan.responses.flatMap(({ content, headers }) => [
      ...content.map(({ schema }) => schema ?? true),
      ...Object.values(headers),
    ]),
  ];
  for (const schema of schemas) {
    compileSchema(typeof schema === "boolean" ? schema : { ...schema, $defs: plan.definitions });
  }
  return schemas.length;
}
