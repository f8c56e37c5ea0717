import { setOwn } from "../../../core/json/json-value.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import type { OAuthFlowPlan, SecurityPlan, SecuritySchemePlan } from "../plan.ts";
import type { DocumentFiles } from "./document-files.ts";

type Fields = Record<string, unknown>;
type Schemes = Readonly<Record<string, SecuritySchemePlan>>;

const UNKNOWN: SecuritySchemePlan = { type: "unknown" };
const OLD_FLOWS: Readonly<Record<string, string>> = {
  accessCode: "authorizationCode",
  application: "clientCredentials",
};

/** Makes the plans of all security schemes of a document. */
export function planSchemes(files: DocumentFiles): Schemes {
  const root = files.root.root as Fields;
  const components = isObject(root["components"]) ? root["components"]["securitySchemes"] : undefined;
  const schemes = components ?? root["securityDefinitions"];
  const plans: Record<string, SecuritySchemePlan> = {};
  if (!isObject(schemes)) return plans;
  for (const name of Object.keys(schemes)) {
    const at = files.follow({ value: schemes[name], file: files.root, key: "" });
    const scheme = typeof at === "string" || !isObject(at.value) ? UNKNOWN : planScheme(at.value);
    setOwn(plans, name, Object.freeze(scheme));
  }
  return plans;
}

function planScheme(scheme: Fields): SecuritySchemePlan {
  switch (scheme["type"]) {
    case "apiKey":
      return planApiKey(scheme);
    case "basic":
      return { type: "http", scheme: "basic" };
    case "http":
      return typeof scheme["scheme"] === "string"
        ? { type: "http", scheme: scheme["scheme"].toLowerCase() }
        : UNKNOWN;
    case "oauth2":
      return { type: "oauth2", flows: planFlows(scheme) };
    case "openIdConnect":
      return typeof scheme["openIdConnectUrl"] === "string"
        ? { type: "openIdConnect", openIdConnectUrl: scheme["openIdConnectUrl"] }
        : UNKNOWN;
    case "mutualTLS":
      return { type: "mutualTLS" };
    default:
      return UNKNOWN;
  }
}

function planApiKey({ in: place, name }: Fields): SecuritySchemePlan {
  if (typeof name !== "string" || name === "") return UNKNOWN;
  return place === "header" || place === "query" || place === "cookie"
    ? { type: "apiKey", in: place, name }
    : UNKNOWN;
}

function planFlows(scheme: Fields): Record<string, OAuthFlowPlan> {
  const plans: Record<string, OAuthFlowPlan> = {};
  if (typeof scheme["flow"] === "string") {
    const name = Object.hasOwn(OLD_FLOWS, scheme["flow"]) ? OLD_FLOWS[scheme["flow"]] : scheme["flow"];
    setOwn(plans, name as string, planFlow(scheme));
  }
  if (!isObject(scheme["flows"])) return plans;
  for (const [name, flow] of Object.entries(scheme["flows"]))
    if (isObject(flow)) setOwn(plans, name, planFlow(flow));
  return plans;
}

function planFlow({ tokenUrl, refreshUrl, scopes }: Fields): OAuthFlowPlan {
  return {
    tokenUrl: typeof tokenUrl === "string" ? tokenUrl : undefined,
    refreshUrl: typeof refreshUrl === "string" ? refreshUrl : undefined,
    scopes: isObject(scopes) ? Object.keys(scopes) : [],
  };
}

/** What an operation asks for, and the schemes it names. */
export interface PlannedSecurity {
  readonly security: readonly SecurityPlan[];
  readonly schemes: Schemes;
}

/** Makes the plan of what a caller must show, by what is `said` of it. */
export function planSecurity(said: unknown, all: Schemes, notes: Set<string>): PlannedSecurity {
  const security: SecurityPlan[] = [];
  const schemes: Record<string, SecuritySchemePlan> = {};
  if (said !== undefined && !Array.isArray(said)) notes.add("The security is not a list; it was left out.");
  for (const alternative of Array.isArray(said) ? said : []) {
    if (!isObject(alternative)) continue;
    const plan: Record<string, readonly string[]> = {};
    for (const name of Object.keys(alternative)) {
      const scopes = alternative[name];
      const known = Object.hasOwn(all, name);
      if (!known) notes.add(`The security scheme ${JSON.stringify(name)} is not declared.`);
      setOwn(schemes, name, (known ? all[name] : undefined) ?? UNKNOWN);
      setOwn(plan, name, Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === "string") : []);
    }
    security.push(plan);
  }
  return { security, schemes };
}
