import { describe, expect, it } from "vitest";
import { isSafeAddress } from "./plain-text.tsx";

describe("addresses that may be links", () => {
  it.each(["http://example.com", "https://example.com/a?b#c", "HTTPS://EXAMPLE.COM"])("%s is one", (text) => {
    expect(isSafeAddress(text)).toBe(true);
  });

  it.each([
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " https://example.com",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:https://example.com/1",
    "//example.com",
    "/inspect",
    "https:example.com",
    "https://",
    "https://user:secret@example.com",
    "https://user@example.com",
    `https://example.com/${"a".repeat(2_000)}`,
    "java\nscript:alert(1)",
    "",
  ])("%j is none", (text) => {
    expect(isSafeAddress(text)).toBe(false);
  });
});
