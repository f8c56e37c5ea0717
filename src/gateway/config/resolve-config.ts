import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { isPlainObject, setOwn } from "../../core/json/json-value.ts";
import {
  collectArgumentSecrets,
  collectLoginSecrets,
  collectSecrets,
  type ReferencedValue,
} from "../../core/secrets/collect-secrets.ts";
import type { SecretMask } from "../../core/secrets/secret-mask.ts";
import { isApiCredential } from "../../core/secrets/secret-names.ts";
import { type FileStamps, stampOf } from "../watch-stamps.ts";
import type { ConfigIssue, ValueFacts } from "./check-shape.ts";
import { CONFIG_LIMITS, type ConfigPath, pathKey, quoteText, showPath } from "./config-path.ts";

/** Where references lead. */
export interface ReferenceSources {
  readonly baseDir: string;
  /** The value of a variable, or nothing. */
  readonly variable: (name: string) => string | undefined;
  readonly secrets: SecretMask;
}

/** A config whose references were replaced, and what was found on the way. */
export interface ResolvedConfig extends ValueFacts {
  /** A copy: plain data that is nobody else's. */
  readonly value: unknown;
  readonly issues: readonly ConfigIssue[];
  /** References that lead nowhere. */
  readonly missing: readonly ConfigIssue[];
  /** Files that were referred to. */
  readonly files: FileStamps;
}

/** Copies a config and replaces its references by what they refer to; never throws. */
export function resolveConfig(config: unknown, targets: ReferenceSources): ResolvedConfig {
  const resolving = new Resolving(targets);
  const value = resolving.copy(config, []);
  return { ...resolving.found, value };
}

/** What a reference leads to, or why it leads nowhere. */
type Target = ReferencedValue | { readonly reason: string };

class Resolving {
  readonly found = {
    referenced: new Set<string>(),
    unresolved: new Set<string>(),
    issues: [] as ConfigIssue[],
    missing: [] as ConfigIssue[],
    files: new Map<string, string>(),
  };
  readonly #targets: ReferenceSources;

  constructor(targets: ReferenceSources) {
    this.#targets = targets;
  }

  copy(value: unknown, path: ConfigPath): unknown {
    if (typeof value === "string") return this.#copyText(value, path);
    if (value === null || typeof value === "number" || typeof value === "boolean") return value;
    const isList = Array.isArray(value);
    if (!isList && !isPlainObject(value)) {
      const what = path.length === 0 ? "The config" : showPath(path);
      return this.#refuse(path, `${what} must be plain data; it is a ${typeof value}.`);
    }
    if (path.length >= CONFIG_LIMITS.depth) {
      return this.#refuse(
        path.slice(0, 8),
        `The config is nested more than ${CONFIG_LIMITS.depth} levels deep.`,
      );
    }
    return isList ? this.#copyItems(value, path) : this.#copyMembers(value, path);
  }

  #copyItems(items: readonly unknown[], path: ConfigPath): unknown[] {
    const copied = items.map((item, index) => this.copy(item, [...path, index]));
    if (path.at(-1) === "args") collectArgumentSecrets(copied, this.#targets.secrets);
    return copied;
  }

  #copyMembers(members: Readonly<Record<string, unknown>>, path: ConfigPath): Record<string, unknown> {
    const copied: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(members)) {
      if (member !== undefined) setOwn(copied, name, this.copy(member, [...path, name]));
    }
    if (isApiCredential(path)) collectLoginSecrets(copied, this.#targets.secrets);
    return copied;
  }

  #copyText(text: string, path: ConfigPath): string {
    if (path.length === 1 && path[0] === "$schema") return text;
    const parts = this.#parse(text, path);
    const values: ReferencedValue[] = [];
    let resolved = "";
    for (const part of parts) {
      const target = this.#find(part);
      if ("reason" in target) {
        this.found.unresolved.add(pathKey(path));
        this.found.missing.push({ path, at: "value", message: target.reason });
        return text;
      }
      resolved += target.value;
      if (!("text" in part)) values.push(target);
    }
    if (values.length > 0) this.found.referenced.add(pathKey(path));
    collectSecrets({ text: resolved, parts: values }, path, this.#targets.secrets);
    return resolved;
  }

  #parse(text: string, path: ConfigPath): readonly TextPart[] {
    if (!text.includes("${")) return [{ text }];
    try {
      return parseReferences(text);
    } catch (thrown) {
      if (!(thrown instanceof ReferenceMistake)) throw thrown;
      this.#refuse(path, `${showPath(path)} ${thrown.message}.`);
      return [{ text: "" }];
    }
  }

  #find(part: TextPart): Target {
    if ("text" in part) return { value: part.text };
    if ("file" in part) return this.#readFile(part.file);
    const value = this.#targets.variable(part.env);
    const orElse = value === undefined || value === "" ? (part.orElse ?? value) : value;
    if (orElse === undefined) return { reason: `The environment variable ${part.env} is not set` };
    return { variable: part.env, value: orElse };
  }

  #readFile(name: string): Target {
    const path = resolve(this.#targets.baseDir, name);
    if (!this.found.files.has(path)) this.found.files.set(path, stampOf(path));
    try {
      const facts = statSync(path);
      if (!facts.isFile()) return { reason: `The file ${quoteText(name)} is no file` };
      if (facts.size > CONFIG_LIMITS.referencedBytes) {
        return { reason: `The file ${quoteText(name)} has more than ${CONFIG_LIMITS.referencedBytes} bytes` };
      }
      return { value: readFileSync(path, "utf8").replace(/\r?\n$/, "") };
    } catch (thrown) {
      const isGone = (thrown as NodeJS.ErrnoException).code === "ENOENT";
      return { reason: `The file ${quoteText(name)} ${isGone ? "does not exist" : "cannot be read"}` };
    }
  }

  #refuse(path: ConfigPath, message: string): undefined {
    this.found.unresolved.add(pathKey(path));
    this.found.issues.push({ path, at: "value", message });
  }
}

/** What stands in a text: plain text, or a reference to what is kept elsewhere. */
export type TextPart =
  | { readonly text: string }
  | { readonly env: string; readonly orElse?: string }
  | { readonly file: string };

/** A reference that is not written as one. */
export class ReferenceMistake extends Error {
  override readonly name = "ReferenceMistake";
}

const NAME = "[A-Za-z_][A-Za-z0-9_.()]*";
const VARIABLE = new RegExp(`^(?:env:)?(${NAME})(?::-([\\s\\S]*))?$`);
const FORMS = `write \${NAME}, \${env:NAME}, \${NAME:-default} or \${file:path}, and $\${ for a plain \${`;

/** Takes a text apart: `${NAME}`, `${env:NAME}`, `${NAME:-default}`, `${file:path}`; `$${` is a plain `${`. */
export function parseReferences(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let plain = "";
  let at = 0;
  for (let open = text.indexOf("${"); open !== -1; open = text.indexOf("${", at)) {
    if (open > at && text[open - 1] === "$") {
      plain += `${text.slice(at, open - 1)}\${`;
      at = open + 2;
      continue;
    }
    const close = text.indexOf("}", open);
    if (close === -1) throw new ReferenceMistake(`has a reference that is not closed; ${FORMS}`);
    plain += text.slice(at, open);
    if (plain !== "") parts.push({ text: plain });
    plain = "";
    parts.push(parseReference(text.slice(open + 2, close)));
    at = close + 1;
  }
  plain += text.slice(at);
  if (plain !== "" || parts.length === 0) parts.push({ text: plain });
  return parts;
}

function parseReference(inside: string): TextPart {
  if (inside.includes("${"))
    throw new ReferenceMistake("has a reference within a reference, which is not read");
  if (inside.startsWith("file:") && inside.length > "file:".length)
    return { file: inside.slice("file:".length) };
  const found = VARIABLE.exec(inside);
  if (found === null) throw new ReferenceMistake(`has a reference that is not known; ${FORMS}`);
  const env = found[1] as string;
  return found[2] === undefined ? { env } : { env, orElse: found[2] };
}

/** Writes a text so that reading it gives the same text, with no reference in it. */
export function escapeReferences(text: string): string {
  return text.replaceAll("${", () => "$${");
}
