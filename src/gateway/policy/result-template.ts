import { parsePointer } from "../../core/json/json-pointer.ts";
import { toJsonTextOrNone } from "../../core/json/json-value.ts";
import { checkOptionsObject } from "../../core/options/check-options.ts";
import { type ResultLink, type ResultSaid, SAID_LIMITS } from "../../core/result/said.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { truncateText } from "../../core/text/truncate-text.ts";

/**
 * What a config says about the results of operations it did not write. Texts may hold places: `{/pointer}` is the value at a JSON pointer
 * into the data, `{#/pointer}` how many items or members it has; `{{` and `}}` stand for braces.
 */
export interface ResultTemplate {
  /** @default "ok" */
  readonly status?: "ok" | "info" | "warn" | undefined;
  readonly summary?: string | undefined;
  readonly details?: readonly string[] | undefined;
  readonly nextSteps?: readonly string[] | undefined;
  readonly markdown?: string | undefined;
  readonly links?: readonly { readonly uri: string; readonly name: string }[] | undefined;
}

/** The names of what a template may say. */
const FIELDS = ["status", "summary", "details", "nextSteps", "markdown", "links"] as const;

/** What a text with places looks like, as a JSON Schema pattern. */
export const TEMPLATE_PATTERN = "^(?:[^{}]|\\{\\{|\\}\\}|\\{#?(?:/[^{}]*)?\\})*$";

const TEMPLATE = new RegExp(TEMPLATE_PATTERN, "u");
const PLACE = /\{\{|\}\}|\{(#?)((?:\/[^{}]*)?)\}/g;
/** Characters of one value in a text: it is a source's, and stands in a sentence. */
const VALUE_CHARACTERS = 200;

/** One text, ready to be filled; nothing where a place leads nowhere in the data, because the sentence would not be true. */
type Fill = (data: unknown) => string | undefined;

/** Makes the function that says about data what a template says; a `TypeError` names a text that is no template. */
export function compileTemplate(
  what: string,
  template: ResultTemplate,
): (data: unknown) => ResultSaid | undefined {
  checkOptionsObject(template, FIELDS, `${what}.`);
  const text = (name: string, given: unknown, write = toLine): Fill =>
    compileText(`${what}.${name}`, given, write);
  const texts = (name: "details" | "nextSteps"): readonly Fill[] =>
    (template[name] ?? []).map((given, index) => text(`${name}[${index}]`, given));
  const summary = template.summary === undefined ? undefined : text("summary", template.summary);
  const markdown =
    template.markdown === undefined ? undefined : text("markdown", template.markdown, toMarkdown);
  const [details, nextSteps] = [texts("details"), texts("nextSteps")];
  const links = (template.links ?? []).map(({ uri, name }, index) => ({
    uri: compileUri(`${what}.links[${index}].uri`, uri),
    name: text(`links[${index}].name`, name),
  }));
  const { status } = template;
  return (data) => {
    const filled = {
      summary: summary?.(data),
      markdown: markdown?.(data),
      details: fillAll(details, data),
      nextSteps: fillAll(nextSteps, data),
      links: links.flatMap((link): readonly ResultLink[] => {
        const [uri, name] = [link.uri(data), link.name(data)];
        return uri === undefined || name === undefined ? [] : [{ uri, name }];
      }),
    };
    return {
      ...(status !== undefined && { status }),
      ...(filled.summary !== undefined && { summary: safeLine(filled.summary) }),
      ...(filled.markdown !== undefined && { markdown: filled.markdown }),
      ...(filled.details.length > 0 && { details: filled.details }),
      ...(filled.nextSteps.length > 0 && { nextSteps: filled.nextSteps }),
      ...(filled.links.length > 0 && { links: filled.links }),
    };
  };
}

function fillAll(fills: readonly Fill[], data: unknown): readonly string[] {
  const texts = fills.map((fill) => fill(data)).filter((text) => text !== undefined);
  // A source must not silence a template by long values.
  return texts.map((text) => truncateText(text, SAID_LIMITS.line));
}

function compileText(what: string, given: unknown, write: (value: unknown) => string = toLine): Fill {
  if (typeof given !== "string" || !TEMPLATE.test(given)) {
    throw new TypeError(
      `${what} must be a text whose places are JSON pointers in braces, such as "{/items/0/name}" or "{#/items}"; braces of its own are written twice.`,
    );
  }
  const parts: (string | ((data: unknown) => string | undefined))[] = [];
  let end = 0;
  for (const match of given.matchAll(PLACE)) {
    parts.push(given.slice(end, match.index));
    end = match.index + match[0].length;
    const [whole, count, pointer = ""] = match;
    if (whole === "{{" || whole === "}}") parts.push(whole.charAt(0));
    else parts.push(compilePlace(parsePointer(pointer), count === "#", write));
  }
  parts.push(given.slice(end));
  return (data) => {
    let text = "";
    for (const part of parts) {
      const written = typeof part === "string" ? part : part(data);
      if (written === undefined) return undefined;
      text += written;
    }
    return text;
  };
}

function compilePlace(keys: readonly string[], isCount: boolean, write: (value: unknown) => string): Fill {
  return (data) => {
    const value = valueAt(data, keys);
    if (value === undefined) return undefined;
    return isCount ? sizeOf(value) : write(value);
  };
}

function valueAt(data: unknown, keys: readonly string[]): unknown {
  let at = data;
  for (const key of keys) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}

function sizeOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  return String(Array.isArray(value) ? value.length : Object.keys(value).length);
}

/** A value in a sentence: one line, cleaned, bounded. */
function toLine(value: unknown): string {
  return safeLine(typeof value === "string" ? value : (toJsonTextOrNone(value) ?? ""), VALUE_CHARACTERS);
}

/** The same in Markdown, where the source's text is no link, picture, code, table or HTML. */
function toMarkdown(value: unknown): string {
  return toLine(value).replace(/[\\`[\]<>|]/g, "\\$&");
}

/** An address that is one place alone must be one of the web; in any other the values are parts of it. */
function compileUri(what: string, given: unknown): Fill {
  const isWhole = typeof given === "string" && /^\{\/[^{}]*\}$/.test(given);
  if (!isWhole) return compileText(what, given, (value) => encodeURIComponent(toLine(value)));
  const fill = compileText(what, given, (value) => (typeof value === "string" ? value.slice(0, 2_048) : ""));
  return (data) => {
    const text = fill(data);
    const url = text === undefined ? undefined : parseUrl(text);
    return url !== undefined && ["http:", "https:"].includes(url.protocol) ? url.href : undefined;
  };
}
