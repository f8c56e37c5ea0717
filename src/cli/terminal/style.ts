import picocolors from "picocolors";
import { asJson } from "../../core/json/json-value.ts";
import { escapeHidden } from "../../core/text/clean-text.ts";
import { wantsColours } from "../../gateway/serve/observe/logger.ts";
import type { Io } from "../io.ts";

/** How words are painted; where there are no colours, not at all. */
export type Style = Omit<ReturnType<typeof picocolors.createColors>, "isColorSupported">;

/** Says whether a stream gets colours. */
export function wantsColors(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return wantsColours(env, stream.isTTY === true);
}

/** Creates the colours of a stream. */
export function createStyle(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): Style {
  return picocolors.createColors(wantsColors(stream, env));
}

/** Writes to stdout, and waits where the reader is slower, so that a long stream does not pile up. */
export function writeOut(io: Io, text: string): Promise<void> {
  if (io.stdout.write(text)) return Promise.resolve();
  return new Promise((done) => {
    const finish = (): void => {
      io.stdout.off("drain", finish);
      io.stdout.off("close", finish);
      io.signal?.removeEventListener("abort", finish);
      done();
    };
    io.stdout.once("drain", finish);
    io.stdout.once("close", finish);
    io.signal?.addEventListener("abort", finish, { once: true });
  });
}

/** Writes a value as JSON that shows nothing but what is in it: whatever a terminal acts on stands there as `\uXXXX`. */
export function toSafeJson(value: unknown, indent = 0): string {
  const text = JSON.stringify(value === undefined ? null : asJson(value), undefined, indent);
  return escapeHidden(text ?? "null");
}

const TOKEN = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;

/** Paints JSON text. */
export function paintJson(json: string, style: Style): string {
  return json.replace(TOKEN, (token: string, colon: string | undefined) => {
    if (colon !== undefined) return `${style.cyan(token.slice(0, -colon.length))}${colon}`;
    if (token.startsWith('"')) return style.green(token);
    return token === "null" ? style.dim(token) : style.yellow(token);
  });
}
