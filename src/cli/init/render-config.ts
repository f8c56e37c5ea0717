import { escapeHidden } from "../../core/text/clean-text.ts";
import type { GatewayConfig } from "../../gateway/config/gateway-config.ts";
import type { ConfigFormat } from "./init-answers.ts";

/** Writes a config down. */
export async function renderConfig(config: GatewayConfig, format: ConfigFormat): Promise<string> {
  switch (format) {
    case "json":
      return `${escapeHidden(JSON.stringify(config, undefined, 2))}\n`;
    case "yaml": {
      const { stringify } = await import("yaml");
      const { $schema } = config;
      const head = $schema === undefined ? "" : `# yaml-language-server: $schema=${$schema}\n`;
      return `${head}${stringify(config, { lineWidth: 0 })}`;
    }
    case "ts": {
      const { $schema: _forEditorsOfJson, ...rest } = config;
      return `import { defineConfig } from "waybill/gateway";\n\nexport default defineConfig(${toLiteral(rest, "")});\n`;
    }
  }
}

/** Writes plain JSON data as an expression, the way people write it. */
function toLiteral(value: unknown, indent: string): string {
  const inner = `${indent}  `;
  if (Array.isArray(value)) return `[${value.map((item) => toLiteral(item, inner)).join(", ")}]`;
  if (typeof value !== "object" || value === null) return escapeHidden(JSON.stringify(value));
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  if (members.length === 0) return "{}";
  const lines = members.map(([key, member]) => `${inner}${toKey(key)}: ${toLiteral(member, inner)},\n`);
  return `{\n${lines.join("")}${indent}}`;
}

function toKey(key: string): string {
  // Written plainly it would be the prototype.
  if (key === "__proto__") return '["__proto__"]';
  return /^[A-Za-z_$][\w$]*$/.test(key) ? key : escapeHidden(JSON.stringify(key));
}
