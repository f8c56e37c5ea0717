import { isObject } from "../../../core/schema/json-schema.ts";
import type { OperationPlan, ParameterPlan } from "../plan.ts";
import { successResponses } from "../response/declared-media.ts";
import { partsOf, typesOf } from "../response/schema-view.ts";
import { plainName } from "./list-shape.ts";
import { toCount } from "./next-input.ts";

/** Tells whether successes of an operation have a header, whose name is in lower case, by the document. */
export function declaresHeader(plan: OperationPlan, name: string): boolean {
  return successResponses(plan).some(({ headers }) =>
    Object.keys(headers).some((declared) => declared.toLowerCase() === name),
  );
}

/** Where the value of a parameter goes, and which types it takes. */
export function placeOf(parameter: ParameterPlan, plan: OperationPlan) {
  return { input: [parameter.key], types: typesOf(parameter.schema, plan.definitions) };
}

/** What the document says of a parameter that counts, and of the one for the size of a page. */
export function countsOf(
  counted: ParameterPlan,
  plan: OperationPlan,
  { style, size }: { readonly style: "offset" | "page"; readonly size: ParameterPlan | undefined },
) {
  const isFromOne = style === "page" || plainName(counted.name) === "startindex";
  const lowest = style === "page" ? keywordOf(counted, "minimum", plan) : undefined;
  return {
    input: [counted.key],
    first: keywordOf(counted, "default", plan) ?? lowest ?? (isFromOne ? 1 : 0),
    ...(size !== undefined && {
      size: [size.key],
      usualSize: keywordOf(size, "default", plan),
      largestSize: keywordOf(size, "maximum", plan),
    }),
  };
}

function keywordOf({ schema }: ParameterPlan, keyword: string, plan: OperationPlan): number | undefined {
  for (const part of partsOf(schema, plan.definitions)) {
    const value = isObject(part) ? toCount(part[keyword]) : undefined;
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Tells whether a parameter takes numbers. */
export function isCount({ schema }: ParameterPlan, plan: OperationPlan): boolean {
  const types = typesOf(schema, plan.definitions);
  return types.size === 0 || types.has("integer") || types.has("number");
}

/** Gives the parameter with the first of these names, without case and punctuation. */
export function pick(
  parameters: readonly ParameterPlan[],
  names: readonly string[],
  isFit: (parameter: ParameterPlan) => boolean = () => true,
): ParameterPlan | undefined {
  for (const name of names) {
    const found = parameters.find((parameter) => plainName(parameter.name) === name && isFit(parameter));
    if (found !== undefined) return found;
  }
  return undefined;
}
