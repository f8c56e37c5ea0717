/** The most bytes of an env file. */
export const MOST_ENV_FILE_BYTES = 1_048_576;

/** One `NAME=value`: quoted values may hold line breaks, unquoted ones end at ` #` or at the end of the line. */
const LINE =
  /^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*=[ \t]*(?:'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|`([^`]*)`|([^\r\n]*))/;

/** Reads lines of `NAME=value`: quotes, `export` and comments as in a shell; nothing in a value is replaced. */
export function parseEnvFile(text: string): Map<string, string> {
  const values = new Map<string, string>();
  let rest = text.replace(/^\uFEFF/, "");
  while (rest !== "") {
    const found = LINE.exec(rest);
    if (found !== null) values.set(found[1] as string, readValue(found));
    const end = rest.indexOf("\n", found?.[0].length ?? 0);
    rest = end === -1 ? "" : rest.slice(end + 1);
  }
  return values;
}

function readValue([, , single, double, backtick, plain = ""]: readonly (string | undefined)[]): string {
  if (double !== undefined)
    return double.replace(/\\([\s\S])/g, (_, character: string) => unescapeOne(character));
  return single ?? backtick ?? plain.replace(/(?:^|\s)#.*$/, "").trim();
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

/** What a backslash and a character stand for; anything but the usual ones stays as it is. */
function unescapeOne(character: string): string {
  if (character === '"' || character === "\\" || character === "$") return character;
  return ESCAPES[character] ?? `\\${character}`;
}
