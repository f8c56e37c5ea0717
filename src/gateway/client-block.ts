/** How one program that speaks MCP is told of a gateway that is served over HTTP. */
export interface ClientBlock {
  readonly client: "claude-code" | "cursor" | "vscode" | "codex";
  /** The program's own name. */
  readonly title: string;
  /** Where the text goes: a file, or a shell. */
  readonly where: string;
  readonly text: string;
}

/** What is connected to. */
export interface ServedMcp {
  /** What the gateway calls itself. */
  readonly name: string;
  /** Where it serves MCP. */
  readonly url: string;
  /** Whether callers need a token; the text then names the variable `WAYBILL_TOKEN`, and never a token. */
  readonly isAuthOn: boolean;
}

const TOKEN = "WAYBILL_TOKEN";
const MOST_NAME = 60;

/** Writes for each known program what makes it use a gateway. */
export function clientBlocks({ name: given, url, isAuthOn }: ServedMcp): readonly ClientBlock[] {
  const name =
    given
      .slice(0, MOST_NAME)
      .replace(/[^\w-]+/g, "-")
      .replace(/^-+|-+$/g, "") || "waybill";
  const bearer = (variable: string) => (isAuthOn ? { headers: { Authorization: `Bearer ${variable}` } } : {});
  const json = (value: object): string => JSON.stringify(value, undefined, 2);
  const header = isAuthOn ? ` --header "Authorization: Bearer $${TOKEN}"` : "";
  const variable = isAuthOn ? `\nbearer_token_env_var = "${TOKEN}"` : "";
  return [
    {
      client: "claude-code",
      title: "Claude Code",
      where: "in a shell",
      text: `claude mcp add --transport http ${name} ${url}${header}`,
    },
    {
      client: "cursor",
      title: "Cursor",
      where: "~/.cursor/mcp.json",
      text: json({ mcpServers: { [name]: { url, ...bearer(`\${env:${TOKEN}}`) } } }),
    },
    {
      client: "vscode",
      title: "VS Code",
      where: ".vscode/mcp.json",
      text: json({ servers: { [name]: { type: "http", url, ...bearer(`\${env:${TOKEN}}`) } } }),
    },
    {
      client: "codex",
      title: "Codex",
      where: "~/.codex/config.toml",
      text: `[mcp_servers.${name}]\nurl = ${JSON.stringify(url)}${variable}`,
    },
  ];
}
