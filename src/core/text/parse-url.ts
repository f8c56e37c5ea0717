/**
 * Parses a URL; gives undefined where the text is none. `URL.canParse` is not used: on Node 20, once it is compiled after some
 * thousand calls, it refuses every text with letters between U+0080 and U+00FF.
 */
export function parseUrl(text: string, base?: string | URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

/** Undoes percent-encoding; a text that is not encoded as it should be stays as it is. */
export function percentDecoded(text: string): string {
  try {
    return text.includes("%") ? decodeURIComponent(text) : text;
  } catch {
    return text;
  }
}
