import { setOwn } from "../../../core/json/json-value.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import type {
  OAuthFlowPlan,
  SecurityPlan,
  SecuritySchemePlan,
  ServerPlan,
  ServerVariablePlan,
} from "../plan.ts";
import type { DocumentFile } from "./document-file.ts";
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

function planFlow({ authorizationUrl, tokenUrl, refreshUrl, scopes }: Fields): OAuthFlowPlan {
  return {
    ...(typeof authorizationUrl === "string" && { authorizationUrl }),
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

const HERE: readonly ServerPlan[] = [{ url: "/", name: undefined, description: undefined, variables: {} }];

/** Makes the plans of where an operation is: what it says itself, else its path, else the document. */
export function planServers(operation: Fields, item: Fields, file: DocumentFile): readonly ServerPlan[] {
  const root = file.root as Fields;
  if (root["swagger"] !== undefined)
    return planHost(operation, root, file.url.startsWith("http:") ? "http" : "https");
  for (const { servers } of [operation, item, isBeside(file) ? { servers: [{ url: "." }] } : root]) {
    if (!Array.isArray(servers)) continue;
    const plans = servers.filter(isServer).map(planServer);
    if (plans.length > 0) return plans;
  }
  return HERE;
}

/** What Waybill serves beside its document is called where that was read from: proxies may have other names and paths for it. */
function isBeside({ root, url }: DocumentFile): boolean {
  const waybill = isObject(root) ? root["x-waybill"] : undefined;
  return /^https?:/.test(url) && isObject(waybill) && waybill["base"] === ".";
}

function isServer(server: unknown): server is Fields & { url: string } {
  return isObject(server) && typeof server["url"] === "string";
}

function planServer(server: Fields & { url: string }): ServerPlan {
  const { url, name, description, variables } = server;
  return {
    url,
    name: typeof name === "string" ? name : undefined,
    description: typeof description === "string" ? description : undefined,
    variables: isObject(variables) ? planVariables(variables) : {},
  };
}

function planVariables(variables: Fields): Record<string, ServerVariablePlan> {
  const plans: Record<string, ServerVariablePlan> = {};
  for (const [name, variable] of Object.entries(variables)) {
    if (!isObject(variable)) continue;
    const { default: value, enum: values } = variable;
    // Written without quotes in YAML, a port is a number.
    setOwn(plans, name, {
      default: value === undefined || typeof value === "object" ? undefined : String(value),
      enum: Array.isArray(values) ? values.map(String) : undefined,
    });
  }
  return plans;
}

/** Without a scheme, it is the one that the document was read by. */
function planHost(operation: Fields, root: Fields, scheme: string): readonly ServerPlan[] {
  const { host, basePath } = root;
  const path = typeof basePath === "string" && basePath !== "" ? `/${basePath.replace(/^\/+/, "")}` : "/";
  if (typeof host !== "string" || host === "") return [{ ...(HERE[0] as ServerPlan), url: path }];
  const schemes = schemesOf(operation["schemes"]) ?? schemesOf(root["schemes"]) ?? [scheme];
  return schemes.map((name) => ({ ...(HERE[0] as ServerPlan), url: `${name}://${host}${path}` }));
}

/** Safe ones first. */
function schemesOf(schemes: unknown): string[] | undefined {
  if (!Array.isArray(schemes)) return undefined;
  const known = ["https", "http"].filter((scheme) => schemes.includes(scheme));
  return known.length > 0 ? known : undefined;
}
