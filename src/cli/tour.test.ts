import { describe, expect, it } from "vitest";
import { runTour } from "./tour.ts";

async function written(colors: boolean): Promise<string> {
  const parts: string[] = [];
  await runTour({ write: (part) => void parts.push(part), colors });
  return parts.join("");
}

describe("runTour", () => {
  it("paints only when asked, and says the same either way", async () => {
    const [plain, painted] = [await written(false), await written(true)];
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what this is about
    const escapes = /\u001b\[\d+m/g;
    expect(plain).not.toMatch(escapes);
    expect(painted).toMatch(escapes);
    const steady = (text: string) =>
      text.replaceAll(escapes, "").replaceAll(/timestamp: \d+/g, "timestamp: …");
    expect(steady(painted)).toBe(steady(plain));
  });

  it("keeps its prose within 100 columns", async () => {
    const prose = (await written(false)).split("\n").filter((line) => /^ {5}why|^ {13}\w/.test(line));
    expect(prose.length).toBeGreaterThan(8);
    expect(prose.filter((line) => line.length > 102)).toEqual([]);
  });
});
