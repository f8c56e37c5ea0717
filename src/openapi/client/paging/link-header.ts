/** One link of a `Link` header. */
export interface WebLink {
  readonly target: string;
  /** In lower case. */
  readonly relations: readonly string[];
}

const LONGEST = 65_536;
const MOST_LINKS = 100;

/** Reads a `Link` header (RFC 8288), in linear time; what cannot be read ends it. */
export function parseLinks(header: string): readonly WebLink[] {
  const links: WebLink[] = [];
  const text = header.slice(0, LONGEST);
  let at = 0;
  while (links.length < MOST_LINKS) {
    at = skip(text, at, " \t,");
    if (text[at] !== "<") break;
    const end = text.indexOf(">", at);
    if (end === -1) break;
    const parameters = readParameters(text, end + 1);
    links.push({ target: text.slice(at + 1, end).trim(), relations: relationsOf(parameters.rel) });
    at = parameters.end;
  }
  return links;
}

/** Gives the first target of a relation. */
export function targetOf(links: readonly WebLink[], relation: string): string | undefined {
  return links.find(({ relations }) => relations.includes(relation))?.target;
}

function relationsOf(rel: string | undefined): readonly string[] {
  return rel === undefined ? [] : rel.toLowerCase().split(/[ \t]+/);
}

/** The first `rel` counts, others are to be ignored. */
function readParameters(
  text: string,
  start: number,
): { readonly rel: string | undefined; readonly end: number } {
  let rel: string | undefined;
  let at = skip(text, start, " \t");
  while (text[at] === ";") {
    const nameAt = skip(text, at + 1, " \t");
    let end = nameAt;
    while (end < text.length && !"=;, \t".includes(text.charAt(end))) end++;
    const name = text.slice(nameAt, end).toLowerCase();
    at = skip(text, end, " \t");
    if (text[at] !== "=") continue;
    const value = readValue(text, skip(text, at + 1, " \t"));
    if (name === "rel") rel ??= value.text;
    at = skip(text, value.end, " \t");
  }
  return { rel, end: at };
}

function readValue(text: string, start: number): { readonly text: string; readonly end: number } {
  let end = start;
  if (text[start] !== '"') {
    while (end < text.length && !";, \t".includes(text.charAt(end))) end++;
    return { text: text.slice(start, end), end };
  }
  let value = "";
  for (end = start + 1; end < text.length && text[end] !== '"'; end++) {
    if (text[end] === "\\") end++;
    value += text.charAt(end);
  }
  return { text: value, end: end + 1 };
}

function skip(text: string, start: number, characters: string): number {
  let at = start;
  while (at < text.length && characters.includes(text.charAt(at))) at++;
  return at;
}
