import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { ConfigError, type LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import { EXIT, type Io } from "../io.ts";
import { createPastedCommand, type PastedCommand } from "../pasted-command.ts";
import { type ReadTarget, readTarget, type SourceFlags } from "../session.ts";
import { toSafeJson } from "../terminal/json-output.ts";
import { withProgress } from "../terminal/progress.ts";
import type { Diagnosis } from "./diagnosis.ts";
import { examineApis } from "./examine-apis.ts";
import { examineConfig, examineMistakes } from "./examine-config.ts";
import { examineBus, examinePort } from "./examine-network.ts";
import { examinePatterns, examineSource } from "./examine-sources.ts";
import { examinePackages, examineSurroundings } from "./examine-surroundings.ts";
import { toDoctorText } from "./write-diagnoses.ts";

/** The flags of `waybill doctor`. */
export interface DoctorFlags extends SourceFlags {
  readonly json?: boolean | undefined;
  /** Milliseconds that sources have to come up. */
  readonly timeout?: number | undefined;
}

const TIMEOUT_MS = 60_000;

/** What was found, and the reports it was found in. */
interface Findings {
  readonly diagnoses: readonly Diagnosis[];
  readonly sources: readonly SourceReport[];
  readonly exitCode: number;
}

/** Looks at everything, says what is wrong and what to do, and gives the exit code. */
export async function runDoctor(io: Io, flags: DoctorFlags): Promise<number> {
  const around = await examineSurroundings(io);
  const { diagnoses, sources, exitCode } = await examineTarget(io, flags);
  const again = createPastedCommand(io, flags);
  // A source that was named on the command line has no name but its flags.
  const isNamed = (flags.mcp ?? flags.openapi ?? flags.url) === undefined;
  const paste = (words: string): string => again(isNamed ? words : words.replace(/^check .*/, "check"));
  const all = [...around, ...diagnoses].map((one) => toShown(one, paste));
  if (flags.json) {
    const ok = exitCode === EXIT.ok && !all.some(isProblem);
    io.stdout.write(`${toSafeJson({ ok, waybill: PACKAGE_VERSION, diagnoses: all, sources }, 2)}\n`);
  } else io.stdout.write(await toDoctorText(all, io));
  return exitCode !== EXIT.ok ? exitCode : all.some(isProblem) ? EXIT.toolError : EXIT.ok;
}

function isProblem({ status }: Diagnosis): boolean {
  return status === "problem";
}

/** Cleans what is shown; commands in it are spelt as this one was, and about the same sources. */
function toShown(diagnosis: Diagnosis, paste: PastedCommand): Diagnosis {
  const { subject, message, fix } = diagnosis;
  return {
    ...diagnosis,
    subject: safeLine(subject, 300),
    message: safeLine(message),
    ...(fix !== undefined && {
      fix: safeLine(fix.replace(/"waybill ([^"]*)"/g, (_, words: string) => `"${paste(words)}"`)),
    }),
  };
}

async function examineTarget(io: Io, flags: DoctorFlags): Promise<Findings> {
  let target: ReadTarget;
  try {
    target = await readTarget(io, flags);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return { diagnoses: examineMistakes(thrown), sources: [], exitCode: EXIT.usage };
  }
  try {
    const { loaded } = target;
    const [{ reports: sources, behind }, rest] = await Promise.all([
      mountSources(io, loaded, flags.timeout ?? TIMEOUT_MS),
      examineRest(io, target),
    ]);
    const diagnoses = [
      ...examineConfig(io, target),
      ...sources.flatMap((report) => examineSource(report, loaded.faults)),
      ...behind,
      ...rest,
    ];
    const masked = diagnoses.map((one) => ({ ...one, message: loaded.secrets.mask(one.message) }));
    return { diagnoses: masked, sources, exitCode: EXIT.ok };
  } finally {
    await target.close();
  }
}

/** Starts every source, as the gateway would, looks at what stands behind it, and ends it again. */
async function mountSources(
  io: Io,
  loaded: LoadedConfig,
  timeoutMs: number,
): Promise<{ readonly reports: readonly SourceReport[]; readonly behind: readonly Diagnosis[] }> {
  const { createGateway } = await import("../../gateway/gateway.ts");
  const gateway = await createGateway(loaded);
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    await withProgress(io, "starting sources", async () => {
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, timeoutMs);
        io.signal?.addEventListener("abort", () => resolve(), { once: true });
      });
      await Promise.race([gateway.ready, late]);
    });
    io.signal?.throwIfAborted();
    const reports = gateway.reports();
    const apis = await examineApis(loaded, reports, io.signal);
    return { reports, behind: [...apis, ...examinePatterns(gateway, loaded)] };
  } finally {
    clearTimeout(timer);
    await gateway.close();
  }
}

async function examineRest(io: Io, { loaded, kind }: ReadTarget): Promise<readonly Diagnosis[]> {
  const { serve = {}, bus } = loaded.config;
  const docs = serve.http !== false && (typeof serve.http !== "object" || serve.http.docs !== false);
  const { wantsTelemetry } = await import("../../gateway/serve/observe/telemetry-sdk.ts");
  const [port, brokers] = await Promise.all([
    // What is on the command line is not served.
    kind === "target" ? [] : examinePort(serve),
    bus === undefined ? [] : examineBus(bus),
  ]);
  const packages = kind === "target" ? [] : examinePackages({ docs, telemetry: wantsTelemetry(io.env) });
  return [port, brokers, packages].flat();
}
