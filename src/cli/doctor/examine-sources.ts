import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { unusedPatterns } from "../../gateway/policy/unused-patterns.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import { emptyPatterns } from "../list/source-troubles.ts";
import { counted } from "../terminal/counted.ts";
import { type Diagnosis, fine, note, problem } from "./diagnosis.ts";

/** A start that takes longer is slow. */
const SLOW_MS = 3_000;

/** Says of one source how it is doing, and what is wrong with it. */
export function examineSource(
  report: SourceReport,
  faults: LoadedConfig["faults"] = {},
): readonly Diagnosis[] {
  const { name, state } = report;
  switch (state.status) {
    case "disabled":
      return [note("source", name, "switched off in the config")];
    case "connecting":
      return [
        problem("source", name, "It is still connecting.", "Wait, or give it more with connectTimeoutMs."),
      ];
    case "closed":
      return [problem("source", name, "It is closed.", "Start again.")];
    case "down":
      return [problem("source", name, `down: ${state.reason}`, fixFor(report, faults))];
    case "up":
      return [fine("source", name, describeUp(report)), ...oddOf(report)];
  }
}

function describeUp({ operations, startMs, protocol, title, version }: SourceReport): string {
  const what = [title, version].filter(Boolean).join(" ");
  const parts = [
    counted(operations, "operation"),
    startMs === undefined ? "" : `up in ${Math.round(startMs)} ms`,
    protocol === undefined ? "" : `MCP ${protocol}`,
    what,
  ];
  return parts.filter((part) => part !== "").join(", ");
}

function oddOf(report: SourceReport): readonly Diagnosis[] {
  const { name, kind, startMs = 0, unusable, notes, operations } = report;
  const look = kind === "local" || kind === "bus" ? "waybill list --sources --json" : `waybill check ${name}`;
  const found: Diagnosis[] = [];
  if (startMs > SLOW_MS) {
    const fix = "A process that is installed starts faster than one that npx fetches first.";
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

/** Says which patterns of policies match nothing: most likely a slip. */
export function examinePatterns(gateway: Gateway, loaded: LoadedConfig): readonly Diagnosis[] {
  const fix = "Correct the pattern, or remove it.";
  return unusedPatterns(gateway, loaded).map((message) => note("policy", "", message, fix));
}

/** What to do about a source that is down, by what it says. */
const FIXES: readonly (readonly [RegExp, string])[] = [
  [
    /ENOENT|not found|no such file|does not exist/i,
    "Install the program, or correct the command or the path.",
  ],
  [/ECONNREFUSED|refused the connection|connection refused/i, "Start the server, or correct its address."],
  [/ENOTFOUND|EAI_AGAIN|resolve/i, "Correct the name of the host, or look at the network."],
  [
    /authori[sz]ation|401|403|UNAUTHENTICATED|credential|token/i,
    "Give it a token: bearer, oauth, headers or auth of the source.",
  ],
  [/certificate|TLS/i, "Name its authority in NODE_EXTRA_CA_CERTS."],
  [
    /in time|timed? ?out|no answer/i,
    "Give it more time with connectTimeoutMs, or start it by hand to see what it waits for.",
  ],
  [/exited|ended/i, "Start the command by hand, and see what it says."],
];

function fixFor({ name, kind, state }: SourceReport, faults: LoadedConfig["faults"]): string {
  if (kind === "local")
    return 'Mend the modules; "waybill list --sources --json" names each that cannot be used.';
  const isFault = Object.keys(faults).some((key) => key.endsWith(`.${name}`));
  if (isFault) return "Set what the reference names, or remove it.";
  const reason = state.status === "down" ? state.reason : "";
  if (kind === "openapi" && /does not exist|cannot be opened|is no file/.test(reason))
    return `Correct openapi.${name}.document; a path counts from the folder of the config.`;
  const fix = FIXES.find(([said]) => said.test(reason))?.[1];
  return fix ?? `"waybill check ${name}" tells more.`;
}
