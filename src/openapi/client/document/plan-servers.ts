import { setOwn } from "../../../core/json/json-value.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import type { ServerPlan, ServerVariablePlan } from "../plan.ts";
import type { DocumentFile } from "./document-file.ts";

type Fields = Record<string, unknown>;

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
