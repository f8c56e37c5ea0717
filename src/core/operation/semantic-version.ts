const VERSION =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-((0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*))*))?(\+[\dA-Za-z-]+(\.[\dA-Za-z-]+)*)?$/;

/** Tells whether a value is a semantic version, such as `1.0.0` or `2.1.0-beta.1`. */
export function isSemanticVersion(value: unknown): value is string {
  return typeof value === "string" && VERSION.test(value);
}
