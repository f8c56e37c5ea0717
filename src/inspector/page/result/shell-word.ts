// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal acts on is what is looked for
const ACTED_ON = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;

/** Writes a text as one word of a POSIX shell, which takes nothing in it for anything else. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (ACTED_ON.test(text)) return escapedWord(text);
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A terminal that gets a text pasted may act on what it holds; so that goes as escapes, which bash, zsh and ksh read. */
function escapedWord(text: string): string {
  const bytes = (character: string): string =>
    [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  const body = [...text]
    .map((character) => {
      if (character === "\n") return "\\n";
      if (character === "\\" || character === "'" || character === "!") return bytes(character);
      return ACTED_ON.test(character) ? bytes(character) : character;
    })
    .join("");
  return `$'${body}'`;
}
