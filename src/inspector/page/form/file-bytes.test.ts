import { expect, it } from "vitest";
import { base64Size, MOST_FILE_BYTES, readFile, toBase64 } from "./file-bytes.ts";

it.each([0, 1, 2, 3, 24_575, 24_576, 24_577, 100_000])(
  "writes %i bytes as base64 and knows their size",
  (length) => {
    const bytes = Uint8Array.from({ length }, (_, index) => (index * 7) % 256);
    const text = toBase64(bytes);
    expect(text).toBe(Buffer.from(bytes).toString("base64"));
    expect(base64Size(text)).toBe(length);
  },
);

it("refuses files that are too large, without reading them", async () => {
  const file = Object.assign(new Blob([]), { name: "a" });
  Object.defineProperty(file, "size", { value: MOST_FILE_BYTES + 1 });
  expect(await readFile(file)).toEqual({ problem: expect.stringContaining("at most 8 MB") });
});

it("tells when a file cannot be read", async () => {
  const file = Object.assign(new Blob(["x"]), {
    name: "a",
    arrayBuffer: () => Promise.reject(new Error("gone")),
  });
  expect(await readFile(file)).toEqual({ problem: expect.stringContaining("cannot be read") });
});
