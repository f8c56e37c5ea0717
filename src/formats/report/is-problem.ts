const TEXTS = ["type", "title", "detail", "instance"] as const;

/**
 * Tells whether an object is a problem of an HTTP API (RFC 9457). All its members are optional there; here it must have the status of
 * an error beside one that is text, or a type that is an address beside a title or detail: other objects have a title too.
 */
export function isProblem(value: Readonly<Record<string, unknown>>): boolean {
  const { status, type } = value;
  const texts = TEXTS.filter((name) => typeof value[name] === "string");
  if (typeof status === "number") return status >= 400 && status <= 599 && texts.length > 0;
  const isAddress = typeof type === "string" && /^(?:about:blank$|https?:\/\/|urn:|tag:)/i.test(type);
  return status === undefined && isAddress && (texts.includes("title") || texts.includes("detail"));
}
