const TOKEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON allows none in a text.
  /[ \t\r\n]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;

/** What may come next in JSON. */
type Expected = "value" | "firstValue" | "key" | "firstKey" | "colon" | "next";

/** Finds where text stops being JSON; for text that is known not to be. */
export function jsonFaultAt(text: string): number {
  const open: string[] = [];
  let expected: Expected = "value";
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const match: RegExpExecArray | null = TOKEN.exec(text);
    const next: Expected | undefined =
      match === null
        ? undefined
        : step(match[1] ?? (match[2] === undefined ? "scalar" : "text"), expected, open);
    if (match === null || next === undefined) break;
    expected = next;
    at = TOKEN.lastIndex;
  }
  while (" \t\r\n".includes(text.charAt(at)) && at < text.length) at++;
  return at;
}

/** What may come after a token; nothing where the token may not be there. */
function step(token: string, expected: Expected, open: string[]): Expected | undefined {
  switch (token) {
    case "{":
    case "[":
      if (!isValue(expected)) return undefined;
      open.push(token);
      return token === "{" ? "firstKey" : "firstValue";
    case "}":
      return (expected === "firstKey" || expected === "next") && open.pop() === "{" ? "next" : undefined;
    case "]":
      return (expected === "firstValue" || expected === "next") && open.pop() === "[" ? "next" : undefined;
    case ",":
      if (expected !== "next" || open.length === 0) return undefined;
      return open.at(-1) === "{" ? "key" : "value";
    case ":":
      return expected === "colon" ? "value" : undefined;
    case "text":
      if (expected === "key" || expected === "firstKey") return "colon";
      return isValue(expected) ? "next" : undefined;
    default:
      return isValue(expected) ? "next" : undefined;
  }
}

function isValue(expected: Expected): boolean {
  return expected === "value" || expected === "firstValue";
}
