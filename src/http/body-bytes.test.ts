import fc from "fast-check";
import { expect, it } from "vitest";
import { BodyBytes } from "./body-bytes.ts";

it("RE-25 gives back what was added, however it was cut", () => {
  const size = fc.oneof(fc.nat(20), fc.integer({ min: 1_000, max: 1_050 }), fc.nat(20_000));
  fc.assert(
    fc.property(fc.array(size, { maxLength: 30 }), (sizes) => {
      const body = new BodyBytes();
      let value = 0;
      const chunks = sizes.map((length) => Uint8Array.from({ length }, () => value++ % 251));
      for (const chunk of chunks) body.add(chunk);
      const expected = Buffer.concat(chunks);
      expect(body.length).toBe(expected.length);
      expect(Buffer.compare(Buffer.from(body.join()), expected)).toBe(0);
    }),
  );
});

it("RE-25 keeps a million chunks of a byte in far less than they would take apart", () => {
  const body = new BodyBytes();
  const before = process.memoryUsage();
  for (let index = 0; index < 1_000_000; index++) body.add(Uint8Array.of(index & 0xff));
  const after = process.memoryUsage();
  expect(body.length).toBe(1_000_000);
  expect(after.arrayBuffers - before.arrayBuffers + (after.heapUsed - before.heapUsed)).toBeLessThan(
    100_000_000,
  );
});
