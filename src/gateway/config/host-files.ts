import { posix, win32 } from "node:path";

/** Hosts whose MCP servers can be taken over. */
export type HostName =
  | "Claude Desktop"
  | "Claude Code"
  | "Cursor"
  | "VS Code"
  | "Windsurf"
  | "Zed"
  | "Gemini CLI"
  | "Codex"
  | "Cline"
  | "Roo Code"
  | "Goose"
  | "LM Studio"
  | "Continue"
  | "Amazon Q"
  | "opencode";

/** A file in which a host keeps its MCP servers, if it is there. */
export interface HostFile {
  readonly host: HostName;
  readonly path: string;
}

/** Where to look. */
export interface HostSurroundings {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly platform: NodeJS.Platform;
  readonly cwd: string;
}

/** Lists the files in which hosts and editors keep MCP servers: those of the folder first, then those of the person. */
export function knownHostFiles(surroundings: HostSurroundings): HostFile[] {
  const { home, cwd } = surroundings;
  const { join } = surroundings.platform === "win32" ? win32 : posix;
  const settings = settingsFolder(surroundings);
  const config = configFolder(surroundings);
  const code = join(settings, "Code", "User");
  const extension = (id: string, name: string): string => join(code, "globalStorage", id, "settings", name);
  const roo = "rooveterinaryinc.roo-cline";
  const isWindows = surroundings.platform === "win32";
  const files: readonly (readonly [HostName, string])[] = [
    ["Claude Code", join(cwd, ".mcp.json")],
    ["Cursor", join(cwd, ".cursor", "mcp.json")],
    ["VS Code", join(cwd, ".vscode", "mcp.json")],
    ["VS Code", join(cwd, ".vscode", "settings.json")],
    ["Zed", join(cwd, ".zed", "settings.json")],
    ["Gemini CLI", join(cwd, ".gemini", "settings.json")],
    ["Codex", join(cwd, ".codex", "config.toml")],
    ["Roo Code", join(cwd, ".roo", "mcp.json")],
    ["Continue", join(cwd, ".continue", "config.yaml")],
    ["Amazon Q", join(cwd, ".amazonq", "mcp.json")],
    ["opencode", join(cwd, "opencode.json")],
    ["opencode", join(cwd, "opencode.jsonc")],
    ["Claude Desktop", join(settings, "Claude", "claude_desktop_config.json")],
    ["Claude Code", join(home, ".claude.json")],
    ["Cursor", join(home, ".cursor", "mcp.json")],
    ["VS Code", join(code, "mcp.json")],
    ["VS Code", join(code, "settings.json")],
    ["Windsurf", join(home, ".codeium", "windsurf", "mcp_config.json")],
    ["Zed", isWindows ? join(settings, "Zed", "settings.json") : join(config, "zed", "settings.json")],
    ["Gemini CLI", join(home, ".gemini", "settings.json")],
    ["Codex", join(surroundings.env["CODEX_HOME"] || join(home, ".codex"), "config.toml")],
    ["Cline", extension("saoudrizwan.claude-dev", "cline_mcp_settings.json")],
    ["Roo Code", extension(roo, "mcp_settings.json")],
    ["Roo Code", extension(roo, "cline_mcp_settings.json")],
    [
      "Goose",
      isWindows
        ? join(settings, "Block", "goose", "config", "config.yaml")
        : join(config, "goose", "config.yaml"),
    ],
    ["LM Studio", join(home, ".lmstudio", "mcp.json")],
    ["Continue", join(home, ".continue", "config.yaml")],
    ["Amazon Q", join(home, ".aws", "amazonq", "mcp.json")],
    ["opencode", join(config, "opencode", "opencode.json")],
    ["opencode", join(config, "opencode", "opencode.jsonc")],
  ];
  return files.map(([host, path]) => ({ host, path }));
}

/** Where desktop programs keep their settings. */
function settingsFolder({ home, env, platform }: HostSurroundings): string {
  if (platform === "win32") return env["APPDATA"] || win32.join(home, "AppData", "Roaming");
  if (platform === "darwin") return posix.join(home, "Library", "Application Support");
  return env["XDG_CONFIG_HOME"] || posix.join(home, ".config");
}

/** Where programs of the command line keep theirs. */
function configFolder({ home, env, platform }: HostSurroundings): string {
  return env["XDG_CONFIG_HOME"] || (platform === "win32" ? win32 : posix).join(home, ".config");
}

const BY_PATH: readonly (readonly [RegExp, HostName])[] = [
  [/\/claude_desktop_config\.json$/, "Claude Desktop"],
  [/\/(?:\.claude|\.mcp)\.json$/, "Claude Code"],
  [/\/\.cursor\//, "Cursor"],
  [/\/saoudrizwan\.claude-dev\//, "Cline"],
  [/\/rooveterinaryinc\.roo-cline\/|\/\.roo\//, "Roo Code"],
  [/\/\.vscode\/|\/Code\/User\//, "VS Code"],
  [/\/windsurf\//, "Windsurf"],
  [/\/\.?zed\//i, "Zed"],
  [/\/\.gemini\//, "Gemini CLI"],
  [/\/\.codex\//, "Codex"],
  [/\/goose\//, "Goose"],
  [/\/\.lmstudio\//, "LM Studio"],
  [/\/\.continue\//, "Continue"],
  [/\/\.?amazonq\//, "Amazon Q"],
  [/\/opencode\.jsonc?$/, "opencode"],
];

/** Tells from a path whose file it is, where it can be told. */
export function hostOfPath(path: string): HostName | undefined {
  const slashed = `/${path.replaceAll("\\", "/")}`;
  return BY_PATH.find(([pattern]) => pattern.test(slashed))?.[1];
}
