import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { isWebAddress } from "./web-address.ts";

describe("isWebAddress", () => {
  it.each([
    "https://example.org/pay?id=1#top",
    "https://bücher.example/",
    "https://example.org/a@b",
    "http://localhost:8080/",
    "http://app.localhost/",
    "http://127.0.0.1/x",
    "http://[::1]:3000/",
  ])("Mcp: takes %s", (url) => expect(isWebAddress(url)).toBe(true));

  it.each([
    "",
    "example.org",
    "http://example.org/",
    "http://localhost.example.org/",
    "http://127.0.0.1.example.org/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://bank.example@evil.example/",
    "https://user:secret@example.org/",
    "https://@evil.example/",
    "https://:@evil.example/",
    "https://example.org/\u202Egpj.exe",
    "https://exam\u200Bple.org/",
    "https://exam\nple.org/",
    "https://example.org/a\tb",
    " https://example.org/",
    "https:\\\\example.org\\@evil.example",
    "https://example.org/\u0000",
    "https://example.org/\u{E0041}",
  ])("Mcp: refuses %j", (url) => expect(isWebAddress(url)).toBe(false));

  it("Mcp: takes linear time for a long address", () => {
    const startedAt = cpuMs();
    for (const piece of ["a.", "/", "@", "x"]) isWebAddress(`http://${piece.repeat(500_000)}`);
    expect(cpuMs() - startedAt).toBeLessThan(2_000);
  });
});
