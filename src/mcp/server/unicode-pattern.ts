import { withoutNeedlessEscapes } from "../../core/schema/needless-escapes.ts";

/** The pattern as Unicode mode takes it, with the same meaning; undefined where there is none. */
export function toUnicodePattern(source: string): string | undefined {
  return [source, withoutNeedlessEscapes(source)].find((pattern) => {
    try {
      return new RegExp(pattern, "u") instanceof RegExp;
    } catch {
      return false;
    }
  });
}
