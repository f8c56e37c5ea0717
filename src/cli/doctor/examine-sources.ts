import { shellWord } from "../../core/text/clean-text.ts";
import { counted } from "../../core/text/nearest-name.ts";
import type { OpenApiConfig } from "../../gateway/config/gateway-config.ts";
import { type LoadedConfig, sourceNames } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { unusedPatterns } from "../../gateway/policy/unused-patterns.ts";
import { toApiOptions, toDocument } from "../../gateway/sources/api-source.ts";
import type { DownKind } from "../../gateway/sources/down-cause.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import {
  describeWeight,
  HEAVY_TOKENS,
  LIGHTER_TOOLS,
  roundTokens,
  toolWeight,
} from "../../gateway/tool-weight.ts";
import type { IndexedApi } from "../../openapi/client/plan.ts";
import type { ApiProbe } from "../check/probe-api.ts";
import type { Io } from "../io.ts";
import { emptyPatterns, tellingLines } from "../list/source-troubles.ts";
import { createStyle } from "../terminal/style.ts";
import { type Cell, renderTable } from "../terminal/table.ts";

/** A start that takes longer is slow. */
const SLOW_MS = 3_000;

/** A program that fetches the package it runs, at the beginning of a command. */
const PACKAGE_RUNNER = /(?<=^(?:\S*[\\/])?)(?:npx|bunx|pnpx|uvx|pipx)(?=(?:\.cmd|\.exe)?\s)/;

/** Says of one source how it is doing, and what is wrong with it. */
export function examineSource(
  report: SourceReport,
  faults: LoadedConfig["faults"] = {},
): readonly Diagnosis[] {
  const { name, state, stderr } = report;
  if (report.login === "wanted") {
    return [problem("login", name, "It waits for a login.", `Run "waybill login ${shellWord(name)}".`)];
  }
  const said = stderr === undefined ? {} : { stderr };
  switch (state.status) {
    case "disabled":
      return [note("source", name, "switched off in the config")];
    case "connecting":
      return [
        {
          ...problem(
            "source",
            name,
            "it has not come up in time",
            "Give it longer with --timeout, or connectTimeoutMs in the config, or start it by hand to see what it waits for.",
          ),
          ...said,
        },
      ];
    case "closed":
      return [problem("source", name, "closed", "Start again.")];
    case "down":
      return [{ ...problem("source", name, `down: ${state.reason}`, fixFor(report, faults)), ...said }];
    case "up":
      return [fine("source", name, describeUp(report)), ...oddOf(report)];
  }
}

function describeUp({ operations, offered, startMs, protocol, title, version }: SourceReport): string {
  const what = [title, version].filter(Boolean).join(" ");
  const parts = [
    counted(operations, "operation"),
    operations === offered ? "" : `${offered} before policies`,
    startMs === undefined ? "" : `up in ${Math.round(startMs)} ms`,
    protocol === undefined ? "" : `MCP ${protocol}`,
    what,
  ];
  return parts.filter((part) => part !== "").join(", ");
}

function oddOf(report: SourceReport): readonly Diagnosis[] {
  const { name, kind, target, startMs = 0, unusable, notes, operations } = report;
  const look = kind === "local" || kind === "bus" ? "waybill list --sources --json" : `waybill check ${name}`;
  const found: Diagnosis[] = [];
  const [runner = ""] = kind === "mcp" ? (PACKAGE_RUNNER.exec(target) ?? []) : [];
  if (startMs > SLOW_MS && runner !== "") {
    const fix = `Install the package, and start its own program: ${runner} looks for it at each start.`;
    found.push(note("source", name, `slow: it took ${Math.round(startMs)} ms to start`, fix));
  }
  if (unusable.length > 0) {
    const [first] = unusable;
    const message = `${unusable.length} cannot be used; the first is ${first?.name}: ${first?.reason}`;
    found.push(problem("source", name, message, `See all of them with "${look}".`));
  }
  const empty = emptyPatterns(report);
  for (const pattern of empty) found.push(noFile(name, pattern));
  const cut = notes.length - empty.length;
  if (cut > 0)
    found.push(note("source", name, `${counted(cut, "is", "are")} not taken over whole`, `See "${look}".`));
  if (operations === 0 && unusable.length === 0 && empty.length === 0) {
    found.push(
      note("source", name, "it offers no operations", "Look at its policy: allow, deny and enabled."),
    );
  }
  return [...found, ...lockOf(report)];
}

/** How the tools of a source that is locked compare with what was approved. */
function lockOf({ name, changed }: SourceReport): readonly Diagnosis[] {
  if (changed === undefined) return [];
  if (changed.length === 0) return [fine("lock", name, "all tools are as approved")];
  const named = changed.slice(0, 5).map(({ tool }) => tool);
  const message = `${counted(changed.length, "tool is", "tools are")} not as approved, and refused: ${named.join(", ")}`;
  const fix = `Look at the difference with "waybill lock ${name}", then "waybill lock --approve ${name}".`;
  return [problem("source", name, message, fix)];
}

function noFile(source: string, pattern: string): Diagnosis {
  const fix = `Correct "operations" of the config, which counts from its folder, or put a module there.`;
  return problem("source", source, `no file is found by "${pattern}"`, fix);
}

/** Says how much of a model's context the tool list takes, and what to do about a heavy one. */
export async function examineTools(gateway: Gateway, loaded: LoadedConfig): Promise<readonly Diagnosis[]> {
  if (loaded.config.serve?.mcp === false) return [];
  const weight = await toolWeight(gateway, loaded);
  const message = describeWeight(weight);
  if (weight.tools === 0) return [];
  if (weight.tokens <= HEAVY_TOKENS) return [fine("tools", "", message)];
  const [heaviest] = weight.sources;
  const most =
    heaviest !== undefined && weight.sources.length > 1
      ? `; ${roundTokens(heaviest.tokens)} of them are of "${heaviest.name}"`
      : "";
  return [note("tools", "", `${message}${most}`, LIGHTER_TOOLS)];
}

/** Says which patterns of policies match nothing: most likely a slip. */
export function examinePatterns(gateway: Gateway, loaded: LoadedConfig): readonly Diagnosis[] {
  const fix = "Correct the pattern, or remove it.";
  return unusedPatterns(gateway, loaded).map((message) => note("policy", "", message, fix));
}

/** What to do about a source that is down, by why it is; the rest is told by `check`. */
const FIXES: Readonly<Partial<Record<DownKind, string>>> = {
  start: "Install the program, or correct the command or the path.",
  exit: "Start the command by hand, and see what it says.",
  unreachable: "Start the server, or correct its address.",
  host: "Correct the name of the host, or look at the network.",
  credentials: "Give it a token: bearer, oauth, headers or auth of the source.",
  certificate: "Name its authority in NODE_EXTRA_CA_CERTS.",
  time: "Give it more time with connectTimeoutMs, or start it by hand to see what it waits for.",
};

function fixFor({ name, kind, state }: SourceReport, faults: LoadedConfig["faults"]): string {
  if (kind === "local")
    return 'Mend the modules; "waybill list --sources --json" names each that cannot be used.';
  const isFault = Object.keys(faults).some((key) => key.endsWith(`.${name}`));
  if (isFault) return "Set what the reference names, or remove it.";
  const why = state.status === "down" ? state.why?.kind : undefined;
  if (why === "document")
    return `Correct openapi.${name}.document; a path counts from the folder of the config.`;
  return (why && FIXES[why]) ?? `"waybill check ${name}" tells more.`;
}

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
    const found = isUp(name) ? await probeConfigured(api, loaded.baseDir, signal) : undefined;
    if (found === undefined) return [];
    const { probe, lacks } = found;
    const judged = judgeProbe(name, probe, { place, privateHint: loaded.privateHint });
    if (lacks === undefined) return [judged];
    const fix =
      loaded.privateHint === undefined
        ? `Set ${place}.auth, such as ${lacks}.`
        : "Name the variable that holds them with --token-env.";
    return [judged, note("api", name, "its document asks for credentials, and none are given", fix)];
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
      return problem(area, name, `${probe.origin}: ${probe.message}`, `Start the API, or correct ${field}.`);
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
): Promise<{ readonly probe: ApiProbe; readonly lacks: string | undefined } | undefined> {
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
  if (described === undefined) return undefined;
  const probe = await probeApi(described, { document, api, timeoutMs: PATIENCE_MS, signal });
  const isGiven = config.auth !== undefined || config.headers !== undefined;
  return { probe, lacks: isGiven || !described.asksForCredentials ? undefined : sampleAuth(described) };
}

/** The `auth` that a document asks for, as a config has it. */
function sampleAuth({ schemes }: Pick<IndexedApi, "schemes">): string {
  const [first] = Object.values(schemes);
  if (first?.type === "apiKey") return `{ "apiKey": "\${API_KEY}" }`;
  if (first?.type === "http" && first.scheme.toLowerCase() === "basic")
    return `{ "basic": { "username": "…", "password": "\${PASSWORD}" } }`;
  return `{ "bearer": "\${TOKEN}" }`;
}

/** How something is doing. */
type DiagnosisStatus = "ok" | "note" | "problem";

/** One thing that was looked at; every text is fit to be shown. */
export interface Diagnosis {
  /** Such as "config", "source" or "port". */
  readonly area: string;
  /** Which one of them. */
  readonly subject: string;
  readonly status: DiagnosisStatus;
  readonly message: string;
  /** What to do; with every problem. */
  readonly fix?: string;
  /** The last lines that a process wrote to standard error. */
  readonly stderr?: readonly string[];
}

/** Makes a diagnosis that all is well. */
export function fine(area: string, subject: string, message: string): Diagnosis {
  return { area, subject, status: "ok", message };
}

/** Makes a diagnosis of something that is worth knowing and breaks nothing. */
export function note(area: string, subject: string, message: string, fix?: string): Diagnosis {
  return { area, subject, status: "note", message, ...(fix !== undefined && { fix }) };
}

/** Makes a diagnosis of something that is broken, and says what to do. */
export function problem(area: string, subject: string, message: string, fix: string): Diagnosis {
  return { area, subject, status: "problem", message, fix };
}

/** Orders what was found: problems first, then notes with something to do, then the rest, each as it was looked at. */
export function byWeight(a: Diagnosis, b: Diagnosis): number {
  return weightOf(b) - weightOf(a);
}

function weightOf({ status, fix }: Diagnosis): number {
  if (status === "problem") return 3;
  return status === "ok" ? 0 : fix === undefined ? 1 : 2;
}

/** Lines of standard error that are shown; the rest with `--verbose`, and in JSON. */
const SHOWN_STDERR = 5;

/** Writes diagnoses for people, each of them once: what to do something about, then a table of the rest, then how many problems there are. */
export async function toDoctorText(diagnoses: readonly Diagnosis[], io: Io): Promise<string> {
  const { stdout: stream, env } = io;
  const style = createStyle(stream, env);
  const paint: Readonly<Record<DiagnosisStatus, (text: string) => string>> = {
    ok: style.green,
    note: style.yellow,
    problem: style.red,
  };
  const calm = diagnoses.filter(({ fix }) => fix === undefined);
  const rows = calm.map(({ area, subject, status, message }): readonly Cell[] => [
    { text: status, paint: paint[status] },
    area,
    subject,
    message,
  ]);
  const table = renderTable(rows, { head: ["", "what", "which", "how it is"], stream, env });
  const advice = diagnoses.filter(({ fix }) => fix !== undefined);
  const lines = advice.flatMap(({ area, subject, status, message, fix, stderr = [] }) => [
    `${paint[status](status)}  ${[area, subject].filter(Boolean).join(" ")}: ${message}`,
    ...(io.verbose ? stderr : tellingLines(stderr).slice(-SHOWN_STDERR)).map(
      (line) => `  ${style.dim("|")} ${line}`,
    ),
    `  ${style.cyan("fix:")} ${fix}`,
  ]);
  const problems = diagnoses.filter(({ status }) => status === "problem").length;
  const notes = diagnoses.filter(({ status }) => status === "note").length;
  const more = notes === 0 ? "" : `, ${counted(notes, "note")}`;
  const end = problems === 0 ? style.green("healthy") : style.red(counted(problems, "problem"));
  return `${[...lines, ...(lines.length > 0 ? [""] : []), table, "", `${end}${more}`].join("\n")}\n`;
}
