/** Appends one key to a JSON pointer, escaped. */
export function joinPointer(pointer: string, key: string | number): string {
  if (typeof key === "number") return `${pointer}/${key}`;
  const escaped = key.includes("~") || key.includes("/") ? key.replace(/~/g, "~0").replace(/\//g, "~1") : key;
  return `${pointer}/${escaped}`;
}

/** Splits a JSON pointer (`""` or `/…`) into its unescaped keys. */
export function parsePointer(pointer: string): string[] {
  if (pointer === "") return [];
  return pointer
    .slice(1)
    .split("/")
    .map((token) => token.replace(/~1/g, "/").replace(/~0/g, "~"));
}
