import type { OperationPlan, ParameterPlan, SecuritySchemePlan } from "../plan.ts";

/**
 * Makes what tells whether a parameter must be given: not where a credential is written in its place, whichever alternative the
 * operation is called by.
 */
export function createRequiredCheck({
  security,
  schemes,
}: OperationPlan): (parameter: ParameterPlan) => boolean {
  const alternatives = security.map(
    (alternative) =>
      new Set(
        Object.keys(alternative).map((name) =>
          Object.hasOwn(schemes, name) ? placeOf(schemes[name]) : undefined,
        ),
      ),
  );
  return ({ required, in: place, name }) => {
    if (!required || alternatives.length === 0) return required;
    const written = toPlace(place, name);
    return !alternatives.every((places) => places.has(written));
  };
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
