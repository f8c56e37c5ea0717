import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SCRIPTED_SERVER, scriptedTool, type UsedFolder, useFolder } from "../installed-folder.ts";

let folder: UsedFolder;
beforeEach(() => {
  folder = useFolder();
});
afterEach(() => folder.remove());

/** Types and all, so that only a reader of TypeScript takes it. */
const typedModule = (name: string) => `
import { defineOperation, type OperationRegistry, Type } from "waybill";
const text: string = "said ${name}";
export type Unused = OperationRegistry | undefined;
export const ${name} = defineOperation({
  namespace: "shop", name: "${name}", version: "1.0.0", type: "query", description: "Says ${name}." as string,
  inputSchema: Type.Object({}),
  handler: () => text,
});
`;
const plainModule = (name: string) => `
import { defineOperation } from "waybill";
export default [
  defineOperation({ namespace: "shop", name: "${name}", version: "1.0.0", type: "query", description: "Says ${name}.", handler: () => "said ${name}" }),
];
`;

const CONFIGS = {
  "waybill.config.json": '{ "name": "shop", "operations": ["ops/*"] }',
  "waybill.config.yaml": "name: shop\noperations:\n  - ops/*\n",
  "waybill.config.js": 'export default { name: "shop", operations: ["ops/*"] };\n',
  "waybill.config.mjs":
    'import { defineConfig } from "waybill/gateway";\nexport default async () => defineConfig({ name: "shop", operations: "ops/*" });\n',
  "waybill.config.ts":
    'import { defineConfig, type GatewayConfig } from "waybill/gateway";\nconst operations: string[] = ["ops/*"];\nexport default defineConfig({ name: "shop", operations } satisfies GatewayConfig);\n',
};

const idsOf = async (place: UsedFolder, ...args: string[]): Promise<string[]> => {
  const { operations } = await place.json<{ operations: { id: string }[] }>(["list", "--json", ...args]);
  return operations.map(({ id }) => id);
};

describe("a config file", () => {
  describe.each([
    ["beside the installed package", true],
    ["where the package is not installed, as with npx or a global command", false],
  ])("%s", (_, isBeside) => {
    it.each(Object.entries(CONFIGS))(
      "RE-30 is read as %s, with modules in both languages",
      async (name, text) => {
        const place = useFolder({ isBeside });
        try {
          if (!isBeside) place.write("package.json", { private: true, type: "module" });
          place.write(name, text);
          place.write("ops/typed.ts", typedModule("typed"));
          place.write("ops/plain.mjs", plainModule("plain"));
          // Found from below as well, within a repository.
          place.write(".git/HEAD", "");
          place.write("deep/er/empty.txt", "");
          const cwd = join(place.path, "deep/er");
          const called = await Promise.all(
            ["shop.plain", "shop.typed"].map((id) => place.run(["call", id], { cwd })),
          );
          expect(called).toEqual([
            { code: 0, stdout: '"said plain"\n', stderr: "" },
            { code: 0, stdout: '"said typed"\n', stderr: "" },
          ]);
          expect(await idsOf(place)).toEqual(["shop.plain", "shop.typed"]);
        } finally {
          await place.remove();
        }
      },
    );
  });

  it("RE-30 is named by a flag, wherever it is", async () => {
    folder.write("team/other.yaml", "operations: ops/*.mjs\n");
    folder.write("team/ops/plain.mjs", plainModule("plain"));
    expect(await idsOf(folder, "--config", "team/other.yaml")).toEqual(["shop.plain"]);
  });

  it.each([
    ["waybill.config.json", '{\n  "operations": 7\n}\n', /^waybill: .*waybill\.config\.json:2:\d+ /],
    ["waybill.config.json", '{\n  "operations": "x",,\n}\n', /^waybill: .*waybill\.config\.json:2:\d+ /],
    [
      "waybill.config.yaml",
      "name: x\noperation: y\n",
      /^waybill: .*waybill\.config\.yaml:2:\d+ [\s\S]*"operations"/,
    ],
    ["waybill.config.mjs", "\nexport default {;\n", /^waybill: .*waybill\.config\.mjs:2:\d+ /],
    ["waybill.config.ts", "\n\nexport default {;\n", /^waybill: .*waybill\.config\.ts:3:\d+ /],
    [
      "waybill.config.mjs",
      '\nthrow new Error("no luck");\n',
      /^waybill: .*waybill\.config\.mjs:2:\d+ .*no luck/,
    ],
  ])("RE-30 says the line of a mistake in %s (%j)", async (name, text, said) => {
    folder.write(name, text);
    const { code, stdout, stderr } = await folder.run(["list"]);
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(said)]);
    expect(stderr).not.toMatch(/^ {4}at /m);
  });
});

const SECRET = "sk-0123456789abcdefghijklmnop";
const hostServers = (path: string) => ({
  post: {
    command: process.execPath,
    args: ["server.mjs", "tools.json"],
    cwd: path,
    env: { API_KEY: SECRET },
  },
});

describe("init", () => {
  beforeEach(() => {
    folder.write("server.mjs", SCRIPTED_SERVER);
    folder.write("tools.json", [scriptedTool("a", "Reads.")]);
  });

  it.each(["json", "yaml", "ts"])("RE-30 begins with a sample that works, in %s", async (format) => {
    const { code, stdout } = await folder.run(["init", "--yes", "--format", format]);
    expect(code).toBe(0);
    const [, next = ""] = /^Next: (.+), or (?:npx (?:--no )?)?waybill serve$/m.exec(stdout) ?? [];
    expect(await folder.shell(next)).toEqual({ code: 0, stdout: '{"text":"Hello, Ada."}\n', stderr: "" });
    const again = await folder.run(["init", "--yes"]);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("--force")]);
  });

  it.each([
    ["mcp.json", "mcp.json", (servers: object) => ({ mcpServers: servers })],
    [
      "a desktop host",
      ".config/Claude/claude_desktop_config.json",
      (servers: object) => ({ mcpServers: servers }),
    ],
    ["an editor", ".vscode/mcp.json", (servers: object) => ({ servers, inputs: [] })],
  ])(
    "RE-30 takes over the servers of %s, and moves its secrets where nobody sees them",
    async (_, file, wrap) => {
      folder.write(".git/HEAD", "");
      const from = folder.write(file, wrap(hostServers(folder.path)));
      const made = await folder.run(["init", "--from", from]);
      expect([made.code, made.stderr.includes(SECRET), made.stdout.includes(SECRET)]).toEqual([
        0,
        false,
        false,
      ]);
      expect(folder.read("waybill.config.json")).not.toContain(SECRET);
      expect(folder.read(".env.waybill")).toContain(SECRET);
      expect(folder.read(".gitignore")).toContain(".env.waybill");
      expect(await idsOf(folder)).toEqual(["post.a"]);
      expect((await folder.run(["call", "post.a"])).code).toBe(0);
    },
  );

  it("RE-30 finds what the project has by itself, and leaves what is the person's alone", async () => {
    folder.write(".cursor/mcp.json", { mcpServers: hostServers(folder.path) });
    const home = useFolder({ isBeside: false });
    home.write(".config/Claude/claude_desktop_config.json", { mcpServers: { mine: { command: "x" } } });
    const env = { HOME: home.path, XDG_CONFIG_HOME: join(home.path, ".config") };
    const shown = await folder.run(["init", "--yes", "--dry-run"], { env });
    expect([shown.code, shown.stdout.includes(SECRET)]).toEqual([0, false]);
    expect(shown.stdout).toContain("# waybill.config.json");
    expect((await folder.run(["list"])).stdout).toContain("parcel.book");
    const made = await folder.json<{ files: { path: string }[] }>(["init", "--yes", "--json"], { env });
    expect(made.files.map(({ path }) => path)).toContain("waybill.config.json");
    expect(folder.read("waybill.config.json")).not.toContain("mine");
    expect(await idsOf(folder)).toEqual(["post.a"]);
    await home.remove();
  });

  it("RE-30 mounts what flags name", async () => {
    folder.write(
      "shop.yaml",
      "openapi: 3.1.0\ninfo: { title: Shop, version: '1' }\npaths:\n  /x: { get: { operationId: look, responses: { '200': { description: ok } } } }\n",
    );
    const server = `post=${JSON.stringify(process.execPath)} server.mjs tools.json`;
    const flags = ["--mcp", server, "--openapi", "shop=shop.yaml", "--port", "0", "--format", "yaml"];
    expect((await folder.run(["init", ...flags])).code).toBe(0);
    expect((await idsOf(folder)).sort()).toEqual(["post.a", "shop.look"]);
  });
});
