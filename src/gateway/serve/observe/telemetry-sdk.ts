/** What was loaded: the API, and how to end the SDK once what is left has been sent. */
export interface LoadedSdk {
  readonly api: typeof import("@opentelemetry/api");
  shutdown(): Promise<void>;
}

/** Loads and starts an SDK. */
export type LoadSdk = (env: NodeJS.ProcessEnv) => Promise<LoadedSdk>;

const ENDPOINT = /^OTEL_EXPORTER_OTLP_(?:(?:TRACES|METRICS)_)?ENDPOINT$/;

/** Tells whether an exporter is configured, by the variables that OpenTelemetry reads. */
export function wantsTelemetry(env: NodeJS.ProcessEnv): boolean {
  if (/^true$/i.test(env["OTEL_SDK_DISABLED"] ?? "")) return false;
  return wantsTraces(env) || wantsMetrics(env);
}

function wantsTraces(env: NodeJS.ProcessEnv): boolean {
  return wants(env, "TRACES");
}

function wantsMetrics(env: NodeJS.ProcessEnv): boolean {
  return wants(env, "METRICS");
}

function wants(env: NodeJS.ProcessEnv, what: "TRACES" | "METRICS"): boolean {
  const exporter = env[`OTEL_${what}_EXPORTER`]?.trim() ?? "";
  if (exporter !== "") return !/\bnone\b/.test(exporter);
  return Object.keys(env).some(
    (name) =>
      ENDPOINT.test(name) &&
      (env[name] ?? "") !== "" &&
      !name.includes(what === "TRACES" ? "METRICS" : "TRACES"),
  );
}

/** Where the API keeps what is registered with it; looked at without loading it. */
const GLOBAL = Symbol.for("opentelemetry.js.api.1");

/** Tells whether this process has registered a provider of traces or metrics, by `--import` for instance. */
export function isRegistered(): boolean {
  const registered = (globalThis as Record<symbol, unknown>)[GLOBAL];
  if (typeof registered !== "object" || registered === null) return false;
  return "trace" in registered || "metrics" in registered;
}

/**
 * Loads `@opentelemetry/sdk-node` and starts it as the environment says, without instrumentations. What it says of the process leaves out the
 * command line, which may hold secrets.
 */
export const loadSdk: LoadSdk = async (env) => {
  const api = await import("@opentelemetry/api");
  const { NodeSDK, resources } = await import("@opentelemetry/sdk-node");
  const sdk = new NodeSDK({
    serviceName: env["OTEL_SERVICE_NAME"] || "waybill",
    instrumentations: [],
    resourceDetectors: [resources.envDetector, resources.hostDetector],
    logRecordProcessors: [],
    ...(!wantsTraces(env) && { spanProcessors: [] }),
    ...(!wantsMetrics(env) && { metricReaders: [] }),
  });
  sdk.start();
  return { api, shutdown: () => sdk.shutdown() };
};
