/** A URI template that URIs can be matched with. */
export interface UriMatcher {
  /** The values of the variables, decoded; nothing for a URI of another form. */
  match(uri: string): Readonly<Record<string, string>> | undefined;
  readonly variables: readonly string[];
}

interface Part {
  readonly literal: string;
  readonly variable: string;
  readonly isPath: boolean;
}

const EXPRESSION = /\{([^{}]*)\}/g;
const SUPPORTED = /^(\+?)([A-Za-z0-9_][A-Za-z0-9_.]*)$/;
/** Characters of an address; longer ones are nobody's. */
export const MAX_URI = 65_536;

/** Reads a template of RFC 6570, level 1 and `{+path}`; throws a `TypeError` for anything else. */
export function parseUriTemplate(template: string): UriMatcher {
  const parts: Part[] = [];
  let end = 0;
  for (const found of template.matchAll(EXPRESSION)) {
    const [, plus, variable] = SUPPORTED.exec(found[1] ?? "") ?? [];
    if (variable === undefined) {
      throw new TypeError(`The URI template ${JSON.stringify(template)} uses more than {name} and {+name}.`);
    }
    parts.push({ literal: template.slice(end, found.index), variable, isPath: plus === "+" });
    end = found.index + found[0].length;
  }
  const tail = template.slice(end);
  return {
    variables: parts.map(({ variable }) => variable),
    match: (uri) => (uri.length > MAX_URI ? undefined : matchParts(uri, parts, tail)),
  };
}

/** Tells whether a URI may come from a template of any level: whether it begins as the template does. */
export function mayMatch(template: string, uri: string): boolean {
  const [prefix = ""] = template.split("{", 1);
  try {
    return parseUriTemplate(template).match(uri) !== undefined;
  } catch {
    return prefix !== "" && uri.startsWith(prefix);
  }
}

/** Each variable ends where the text after it first appears, so that matching takes one pass, whatever the template. */
function matchParts(uri: string, parts: readonly Part[], tail: string): Record<string, string> | undefined {
  const values: Record<string, string> = Object.create(null);
  let at = 0;
  for (const [i, { literal, variable, isPath }] of parts.entries()) {
    if (!uri.startsWith(literal, at)) return undefined;
    at += literal.length;
    const next = parts[i + 1]?.literal;
    const end = next === undefined ? uri.length - tail.length : next === "" ? at : uri.indexOf(next, at);
    if (end < at) return undefined;
    const value = decode(uri.slice(at, end), isPath);
    if (value === undefined || value === "") return undefined;
    values[variable] = value;
    at = end;
  }
  return at === uri.length - tail.length && uri.endsWith(tail) ? values : undefined;
}

function decode(text: string, isPath: boolean): string | undefined {
  if (!isPath && /[/?#]/.test(text)) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
