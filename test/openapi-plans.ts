import type { JsonSchema } from "../src/index.ts";
import type { WholeResponse } from "./openapi-transport-peers.ts";
import type { MediaPlan, OperationPlan, ParameterPlan, ResponsePlan } from "./operation-plans.ts";
import { makeParameter as makeAnyParameter, makePlan as makeAnyPlan } from "./operation-plans.ts";

/** Makes the plan of a GET operation, changed where a test wants it. */
export function makePlan(changes: Partial<OperationPlan> = {}): OperationPlan {
  const servers = [{ url: "https://api.example/v1", variables: {} }];
  return makeAnyPlan({ path: "/things", servers, ...changes });
}

/** Makes what a plan says of one status. */
export function makeResponse(
  status: string,
  content: Readonly<Record<string, JsonSchema | undefined>> = {},
  headers: Readonly<Record<string, JsonSchema>> = {},
): ResponsePlan {
  const media = Object.entries(content).map(([mediaType, schema]): MediaPlan => ({ mediaType, schema }));
  return { status, content: media, headers };
}

/** Makes a query parameter. */
export function makeParameter(
  name: string,
  schema: JsonSchema,
  changes: Partial<ParameterPlan> = {},
): ParameterPlan {
  return makeAnyParameter({ name, in: "query", schema, ...changes });
}

/** Makes a response that has arrived. */
export function makeWhole(
  body: string | Uint8Array,
  contentType?: string,
  changes: Partial<WholeResponse> = {},
): WholeResponse {
  return {
    status: 200,
    headers: contentType === undefined ? {} : { "content-type": contentType },
    attempts: 1,
    url: "https://api.example/v1/things",
    body: typeof body === "string" ? new TextEncoder().encode(body) : body,
    delimited: true,
    ...changes,
  };
}
