import type { CommonOptions } from "@clack/prompts";
import { safeLine } from "../../core/text/clean-text.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import type { ConfigFormat, InitAnswers, InitFlags, NamedTarget } from "./init-answers.ts";
import type { FoundHost } from "./merge-hosts.ts";
import { documentMistake, nameMistake, serverMistake, suggestName } from "./named-target.ts";

type Prompts = typeof import("@clack/prompts");

/** What asking needs to know. */
export interface InitAskOptions {
  readonly flags: InitFlags;
  readonly hosts: readonly FoundHost[];
  /** Configs that stand in the folder. */
  readonly configs: readonly string[];
}

/** The port that is served on where nobody says otherwise. */
const DEFAULT_PORT = 4100;

/** Asks the person at the terminal, on stderr; Ctrl-C ends the command before anything was written. */
export async function askAnswers(io: Io, options: InitAskOptions): Promise<InitAnswers> {
  const prompts = await import("@clack/prompts");
  const questions = new Questions(prompts, { input: io.stdin, output: io.stderr, ...signalOf(io) });
  prompts.intro("waybill init", { output: io.stderr });
  const { flags, hosts, configs } = options;
  const replace = flags.force === true || (await questions.mayReplace(configs));
  const chosen = await questions.sources(hosts);
  const openapi = chosen.includes("openapi") ? [await questions.document(io.cwd)] : [];
  const mcp = chosen.includes("mcp") ? [await questions.server(openapi)] : [];
  const format = flags.format ?? (await questions.format());
  const port = flags.port ?? (await questions.port());
  const inspector = flags.inspector ?? (await questions.inspector());
  const hostFiles = hosts.map(({ path }) => path).filter((path) => chosen.includes(hostKey(path)));
  return {
    hostFiles,
    openapi,
    mcp,
    sample: chosen.includes("sample"),
    format,
    port: port === DEFAULT_PORT ? undefined : port,
    inspector,
    replace,
  };
}

function signalOf({ signal }: Io): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** No path is the name of another choice. */
function hostKey(path: string): string {
  return `host ${path}`;
}

class Questions {
  readonly #prompts: Prompts;
  readonly #common: CommonOptions;

  constructor(prompts: Prompts, common: CommonOptions) {
    this.#prompts = prompts;
    this.#common = common;
  }

  async mayReplace(configs: readonly string[]): Promise<boolean> {
    if (configs.length === 0) return false;
    const message = `${configs.join(" and ")} is there already. Replace it? The old one is kept beside it.`;
    const isYes = this.#answered(
      await this.#prompts.confirm({ ...this.#common, message, initialValue: false }),
    );
    if (!isYes) throw new CommandError("nothing was written.", EXIT.ok);
    return true;
  }

  async sources(hosts: readonly FoundHost[]): Promise<string[]> {
    const taken = hosts.map((host) => ({
      value: hostKey(host.path),
      label: safeLine(`MCP servers of ${host.host}: ${Object.keys(host.servers).join(", ")}`, 100),
      hint: safeLine(host.path, 200),
    }));
    const project = hosts.filter(({ isProject }) => isProject).map(({ path }) => hostKey(path));
    return this.#answered(
      await this.#prompts.multiselect({
        ...this.#common,
        message: "What should be mounted?",
        options: [
          ...taken,
          { value: "openapi", label: "An HTTP API", hint: "by its OpenAPI document" },
          { value: "mcp", label: "An MCP server", hint: "a command line or a URL" },
          { value: "sample", label: "Operations of my own", hint: "writes a sample module" },
        ],
        initialValues: project.length > 0 ? project : ["sample"],
        required: true,
      }),
    );
  }

  async document(cwd: string): Promise<NamedTarget> {
    const target = await this.#text("Where is the OpenAPI document?", {
      placeholder: "./openapi.yaml or https://…",
      validate: (text = "") => documentMistake(text, cwd),
    });
    return { name: await this.#name(target, []), target };
  }

  async server(others: readonly NamedTarget[]): Promise<NamedTarget> {
    const target = await this.#text("Which command starts the MCP server, or at which URL is it?", {
      placeholder: "npx -y @modelcontextprotocol/server-filesystem .",
      validate: (text = "") => serverMistake(text),
    });
    const taken = others.map(({ name }) => name);
    return { name: await this.#name(target, taken), target };
  }

  async format(): Promise<ConfigFormat> {
    return this.#answered(
      await this.#prompts.select<ConfigFormat>({
        ...this.#common,
        message: "How should the config be written?",
        options: [
          { value: "json", label: "JSON" },
          { value: "yaml", label: "YAML" },
          { value: "ts", label: "TypeScript" },
        ],
      }),
    );
  }

  async port(): Promise<number> {
    const text = await this.#text("Which port should it serve on?", {
      initialValue: String(DEFAULT_PORT),
      validate: (given = "") => {
        const isPort = /^\d{1,5}$/.test(given.trim()) && Number(given) <= 65_535;
        return isPort ? undefined : "A port is a whole number from 0 to 65535.";
      },
    });
    return Number(text);
  }

  async inspector(): Promise<boolean> {
    const message = "Serve the inspector, a page to look at sources and calls, at /inspect?";
    return this.#answered(await this.#prompts.confirm({ ...this.#common, message, initialValue: true }));
  }

  async #name(target: string, taken: readonly string[]): Promise<string> {
    return await this.#text("Under which name?", {
      initialValue: suggestName(target, taken),
      validate: (name = "") =>
        nameMistake(name.trim()) ?? (taken.includes(name.trim()) ? "This name is taken." : undefined),
    });
  }

  async #text(message: string, options: Partial<Parameters<Prompts["text"]>[0]>): Promise<string> {
    return this.#answered(await this.#prompts.text({ ...this.#common, message, ...options })).trim();
  }

  #answered<T>(answer: T): Exclude<T, symbol> {
    if (typeof answer !== "symbol") return answer as Exclude<T, symbol>;
    this.#prompts.cancel("Nothing was written.", this.#common);
    throw new CommandError("", EXIT.interrupted);
  }
}
