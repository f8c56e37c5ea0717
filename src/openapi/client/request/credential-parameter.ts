import type { OperationPlan, ParameterPlan, SecuritySchemePlan } from "../plan.ts";

/** Makes what tells whether a parameter must be given: not where a credential of the operation is written in its place. */
export function createRequiredCheck({
  security,
  schemes,
}: OperationPlan): (parameter: ParameterPlan) => boolean {
  const written = new Set<string>();
  for (const name of security.flatMap((alternative) => Object.keys(alternative))) {
    const place = Object.hasOwn(schemes, name) ? placeOf(schemes[name]) : undefined;
    if (place !== undefined) written.add(place);
  }
  return ({ required, in: place, name }) => required && !written.has(toPlace(place, name));
}

function placeOf(scheme: SecuritySchemePlan | undefined): string | undefined {
  switch (scheme?.type) {
    case "apiKey":
      return toPlace(scheme.in, scheme.name);
    case "http":
    case "oauth2":
    case "openIdConnect":
      return toPlace("header", "authorization");
    default:
      return undefined;
  }
}

/** Names of headers alone are the same in either case. */
function toPlace(place: ParameterPlan["in"], name: string): string {
  return `${place} ${place === "header" ? name.toLowerCase() : name}`;
}
