import type { BodyPlan, OperationPlan, ParameterPlan } from "../src/openapi/client/plan.ts";

export type {
  MediaPlan,
  OperationPlan,
  ParameterPlan,
  ParameterStyle,
  ResponsePlan,
  SecuritySchemePlan,
} from "../src/openapi/client/plan.ts";

/** What a test says about a parameter; the rest is what OpenAPI says when nothing is said. */
export type PartialParameter = Pick<ParameterPlan, "name" | "in"> & Partial<ParameterPlan>;

/** A parameter with the defaults of its place. */
export function makeParameter(given: PartialParameter): ParameterPlan {
  const style = given.style ?? (given.in === "path" || given.in === "header" ? "simple" : "form");
  return {
    key: given.name,
    required: given.in === "path",
    style,
    explode: style === "form" || style === "cookie",
    allowReserved: false,
    allowEmpty: false,
    schema: true,
    ...given,
  };
}

/** A plan of an operation at `https://api.example`. */
export function makePlan(given: Partial<OperationPlan> = {}): OperationPlan {
  return {
    method: "GET",
    path: "/",
    servers: [{ url: "https://api.example", variables: {} }],
    parameters: [],
    body: undefined,
    responses: [],
    security: [],
    schemes: {},
    definitions: {},
    waybill: undefined,
    notes: [],
    ...given,
  };
}

/** A body of one media type. */
export function makeBody(
  mediaType: string,
  given: Partial<BodyPlan["content"][number]> = {},
  required = false,
): BodyPlan {
  return { key: "body", required, content: [{ mediaType, ...given }] };
}
