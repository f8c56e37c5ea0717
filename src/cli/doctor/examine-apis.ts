import type { OpenApiConfig } from "../../gateway/config/gateway-config.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { sourceNames } from "../../gateway/config/source-names.ts";
import { toApiOptions, toDocument } from "../../gateway/sources/openapi-source.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import type { ApiProbe } from "../check/probe-api.ts";
import { type Diagnosis, fine, problem } from "./diagnosis.ts";

const PATIENCE_MS = 5_000;

/** Looks whether anybody answers where documents say that their APIs are, as far as the documents could be read. */
export async function examineApis(
  loaded: LoadedConfig,
  reports: readonly SourceReport[],
  signal?: AbortSignal,
): Promise<readonly Diagnosis[]> {
  const { openapi = {} } = loaded.config;
  const names = sourceNames(loaded.config);
  const isUp = (name: string) =>
    reports.some((report) => report.name === name && report.state.status === "up");
  const found = Object.entries(openapi).map(async ([key, api]) => {
    const place = `openapi.${key}`;
    const name = names.get(place) ?? key;
    const probe = isUp(name) ? await probeConfigured(api, loaded.baseDir, signal) : undefined;
    return probe === undefined ? [] : [judgeProbe(name, probe, { place, privateHint: loaded.privateHint })];
  });
  return (await Promise.all(found)).flat();
}

interface ApiPlace {
  /** Where it stands in the config. */
  readonly place: string;
  readonly privateHint: string | undefined;
}

/** Says of an API whether calls can get there. */
function judgeProbe(name: string, probe: ApiProbe, { place, privateHint }: ApiPlace): Diagnosis {
  const area = "api";
  // What has a hint of its own was named on the command line.
  const field = privateHint === undefined ? `${place}.baseUrl` : "--base-url";
  switch (probe.kind) {
    case "up":
      return fine(area, name, `${probe.origin} answers`);
    case "down":
      return problem(
        area,
        name,
        `${probe.origin} cannot be reached. ${probe.message}`,
        `Start the API, or correct ${field}.`,
      );
    case "private":
      return problem(
        area,
        name,
        `${probe.place} is at a private or reserved address, and calls there are refused.`,
        `If you mean it, ${privateHint ?? `set ${place}.allowPrivate to ["${probe.place}"]`}.`,
      );
    case "nowhere":
      return problem(area, name, probe.message, `Say where the API is with ${field}.`);
  }
}

/** Nothing where the document cannot be read any more: its source tells why. */
async function probeConfigured(
  config: OpenApiConfig,
  baseDir: string,
  signal: AbortSignal | undefined,
): Promise<ApiProbe | undefined> {
  const [{ readApi }, { createDocumentReader }, { probeApi }] = await Promise.all([
    import("../../openapi/client/document/read-api.ts"),
    import("../../openapi/client/fetch-document.ts"),
    import("../check/probe-api.ts"),
  ]);
  const document = toDocument(config.document, baseDir);
  const api = toApiOptions(config);
  const fetchText = createDocumentReader(document, { ...api, namespace: "api" });
  const overlays = [api.overlay ?? []].flat();
  const described = await readApi(document, { overlays, limits: {}, fetchText }).catch(() => undefined);
  return described && (await probeApi(described, { document, api, timeoutMs: PATIENCE_MS, signal }));
}
