import { describe, expect, it } from "vitest";
import { isTestFile, readSourceFiles } from "../../../test/source-files.ts";
import { parseUrl } from "./parse-url.ts";

describe("parseUrl", () => {
  it("takes what is a URL, by itself or with a base, and nothing else", () => {
    expect(parseUrl("https://bücher.example/ä?ö=ü")?.host).toBe("xn--bcher-kva.example");
    expect(parseUrl("../ß", "https://example.org/a/b/")?.pathname).toBe("/a/%C3%9F");
    expect(parseUrl("/a")).toBeUndefined();
    expect(parseUrl("https://")).toBeUndefined();
  });

  it("answers the hundred thousandth time as it did the first", () => {
    let refused = 0;
    for (let n = 0; n < 100_000; n++) if (parseUrl("https://bücher.example/") === undefined) refused++;
    expect(refused).toBe(0);
  });

  it("is used in place of URL.canParse, which forgets how on Node 20", () => {
    const users = readSourceFiles("src").filter(
      ({ path, text }) => !isTestFile(path) && /URL\.canParse\(/.test(text),
    );
    // The page runs in browsers alone.
    expect(users.map(({ path }) => path)).toEqual(["src/inspector/page/parts/plain-text.tsx"]);
  });
});
