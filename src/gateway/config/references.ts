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
